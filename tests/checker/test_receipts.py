"""What `faults` says of a fault without a receipt: the reason is that of the receipt it lacks."""

from __future__ import annotations

import pytest

from fencepost.checker.receipts import check


def receipt(proved, how):
    return {"proved": proved, "how": how}


def fault(story, start, end):
    """Each of the two is a receipt."""
    for at, phase, shown in ((100, "start", start), (200, "end", end)):
        value = {"fault": "f", "targets": ["s1"], "arguments": {}, "phase": phase}
        story.op(at, "nemesis", "invoke", "pause", value)
        type = "ok" if shown["proved"] else "info"
        story.op(at, "nemesis", type, "pause", {**value, "receipt": shown})


@pytest.mark.parametrize(
    ("start", "end", "reason", "what"),
    [
        (
            receipt(False, "no pid of server X."),
            receipt(True, "it runs"),
            "no pid of server X",
            "no receipt; nothing proves that it took effect. Reason: no pid of server X.",
        ),
        (
            receipt(True, "it stands"),
            receipt(False, "it still stands."),
            "it still stands",
            "nothing proves that it was healed.",
        ),
    ],
)
def test_the_reason_is_that_of_the_receipt_that_proves_nothing(story, start, end, reason, what):
    fault(story, start, end)
    found = check(story.history(), {})
    assert (found.valid, found.summary) == (
        "unknown",
        f"1 of 1 faults lack a receipt ({reason}).",
    )
    assert [(row["what"], row["time_ns"]) for row in found.evidence] == [
        (f"pause of s1 (from 0.100 s): {what}", 100_000_000)
    ]
