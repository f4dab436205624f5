"""Stories for tests of a resource, and the damage that the checker reports. Times are in ms."""

from __future__ import annotations

from fencepost.checker.resource import resource

TWO_HOSTS = {"clocks": {f"client-{n}": {"offset_ns": 0, "bound_ns": 4_000_000} for n in (1, 2, 3)}}


def kinds(story, test=None):
    """Return the damaged writes, or the phantom values that were read, with the kind of damage."""
    history = story.history()
    found = resource(history, test or {})
    assert found.valid is (not found.evidence)
    last = [(row["kind"], history.ops[row["ops"][1]]) for row in found.evidence]
    first = [history.ops[row["ops"][0]].value.get("value") for row in found.evidence]
    return [
        (kind, op.value["value"] if kind == "phantom" else value)
        for (kind, op), value in zip(last, first, strict=True)
    ]


def two_holds(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=2000, until=3000)
