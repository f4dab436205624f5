"""`fencing`: do the tokens order the grants, and does the resource hold to their order?

A fencing token is worth something only if it rises with every grant (Kleppmann 2016): of two
grants of one lock, the one that began after the other had been answered must carry the higher
token, and no two may carry the same. And only if the resource remembers the highest token
that it has seen, and accepts no write with a lower one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checker.faults import Fault, during, faults
from checker.history import History
from checker.holds import Hold, holds, seconds
from checker.verdict import Verdict, count
from checker.writes import Register, Write, in_order, registers


def fencing(history: History, test: Mapping[str, Any]) -> Verdict:
    """Tokens unique and rising along real time; no lower token accepted after a higher one."""
    granted = [hold for hold in holds(history, test) if hold.token is not None]
    if not granted:
        return Verdict("unknown", "No grant carried a token: there was nothing to order.")
    on = faults(history)
    bad_grants = _repeated(granted, on) + _fallen(granted, on)
    bad_writes = _accepted_late(history, on)
    details = {"tokens": len(granted), "grants": not bad_grants, "writes": not bad_writes}
    if not bad_grants and not bad_writes:
        return Verdict(True, f"{count(len(granted), 'token')}, unique and rising.", [], details)
    parts = []
    if bad_grants:
        parts.append(f"{len(bad_grants)} of {count(len(granted), 'token')} repeated or lower")
    if bad_writes:
        parts.append(f"{count(len(bad_writes), 'write')} accepted after one with a higher token")
    evidence = sorted(bad_grants + bad_writes, key=lambda row: row["time_ns"])
    return Verdict(False, f"{' and '.join(parts)}.", evidence, details)


def _repeated(granted: list[Hold], on: list[Fault]) -> list[dict[str, Any]]:
    seen: dict[tuple[str, Any], Hold] = {}
    found = []
    for hold in granted:
        first = seen.setdefault((hold.lock, hold.token), hold)
        if first is not hold:
            found.append(_grant_evidence(first, hold, "the same token", on))
    return found


def _fallen(granted: list[Hold], on: list[Fault]) -> list[dict[str, Any]]:
    """Grants with a token below that of a grant answered before they were even asked for.

    Grants whose calls overlap may be ordered either way, so they prove nothing.
    """
    found = []
    for lock in {hold.lock for hold in granted}:
        mine = [hold for hold in granted if hold.lock == lock]
        answered = sorted(mine, key=lambda hold: hold.start)
        highest: Hold | None = None
        place = 0
        for hold in sorted(mine, key=lambda hold: hold.asked):
            while place < len(answered) and answered[place].start < hold.asked:
                if highest is None or _token(answered[place]) > _token(highest):
                    highest = answered[place]
                place += 1
            if highest and _token(hold) < _token(highest):
                found.append(_grant_evidence(highest, hold, "a lower token", on))
    return found


def _token(hold: Hold) -> int:
    assert hold.token is not None
    return hold.token


def _grant_evidence(first: Hold, second: Hold, how: str, on: list[Fault]) -> dict[str, Any]:
    return {
        "what": (
            f"{second.who} was granted token {second.token} at {seconds(second.start)}: {how} "
            f"{'as' if how.startswith('the same') else 'than'} {first.token}, which {first.who} "
            f"was granted at {seconds(first.start)}.{during(on, first.start, second.start)}"
        ),
        "time_ns": second.start,
        "lock": second.lock,
        "holds": [first.name, second.name],
        "ops": [first.index, second.index],
    }


def _accepted_late(history: History, on: list[Fault]) -> list[dict[str, Any]]:
    found = []
    for register in registers(history):
        highest: Write | None = None
        for applied, write in in_order([w for w in register.writes if w.token is not None]):
            if applied:
                highest = max(highest or write, write, key=_sent)
            elif highest is not None and _sent(write) < _sent(highest):
                found.append(_write_evidence(highest, write, register, on))
    return found


def _sent(write: Write) -> int:
    assert write.token is not None
    return write.token


def _write_evidence(
    first: Write, second: Write, register: Register, on: list[Fault]
) -> dict[str, Any]:
    return {
        "what": (
            f"{second.who} wrote {second.value!r} with token {second.token}, accepted by "
            f"{seconds(second.done_ns)}, after the resource had accepted token {first.token} "
            f"from {first.who}.{during(on, second.sent_ns, second.done_ns)}"
        ),
        "time_ns": second.done_ns,
        "resource": register.name,
        "ops": [first.begin, second.begin],
    }
