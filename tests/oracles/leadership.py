"""`leadership` and its figures: each instant of a small history is looked at by itself.

Times are whole milliseconds, so that the state between two of them never changes.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.checker.history.history import History, Op

MS = 1_000_000


def draw(random: Random) -> tuple[list[Op], list[dict[str, Any]]]:
    """Return the ops of a few leaders, and the truth about each: its start and end, the times of
    its beats, and when its elector called stopped."""
    ops: list[tuple[int, int, dict[str, Any]]] = []
    truth: list[dict[str, Any]] = []

    def add(at: int, process: int, type: str, f: str, **value: Any) -> None:
        row = {"time": at * MS, "process": process, "type": type, "f": f, "value": value}
        ops.append((at, len(ops), row | {"node": f"client-{process}"}))

    starts = random.sample(range(0, 200, 3), random.randint(1, 5))
    for process, start in enumerate(sorted(starts)):
        hold = f"{process}-1"
        length = random.randint(4, 90)
        end = start + length
        deadline = random.choice((None, start + random.randint(1, 120)))
        add(start - 1, process, "invoke", "acquire", lock="orders", ttl=20 * MS)
        more = {} if deadline is None else {"deadline": deadline * MS}
        add(start, process, "ok", "acquire", lock="orders", ttl=20 * MS, hold=hold, **more)
        how = random.choice(("release", "close", "lost"))
        told = random.randint(start, end) if how == "lost" else None
        if told is not None:
            add(told, process, "info", "lost", lock="orders", hold=hold)
        beats = sorted(random.sample(range(start + 1, end), random.randint(0, min(3, length // 2))))
        beats = [at for place, at in enumerate(beats) if place == 0 or at > beats[place - 1] + 1]
        for at in beats:
            f = random.choice(("read", "write"))
            more = {"version": 0} if f == "write" else {}
            add(at, process, "invoke", f, resource="account", hold=hold, **more)
            add(at + 1, process, random.choice(("ok", "fail")), f, resource="account", hold=hold)
        f = "release" if how == "release" else "close"
        about = {"lock": "orders", "hold": hold} if f == "release" else {}
        add(end + 1, process, "invoke", f, **about)
        add(end + 2, process, "ok", f, **about)
        over = min(end + 1 if told is None else told, deadline if deadline is not None else 10**6)
        truth.append({"start": start, "beats": beats, "told": told, "over": max(start, over)})
    ordered = [row for _, _, row in sorted(ops, key=lambda one: one[:2])]
    return [Op(index=index, **row) for index, row in enumerate(ordered)], truth


def expected(truth: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures by looking at each millisecond, and each pair of leaders."""
    two, none, longest = 0, 0, 0
    last = max(one["over"] for one in truth)
    spans = [(one["start"], max([one["start"], *one["beats"]]), one["over"]) for one in truth]
    for first in range(len(spans)):
        for second in range(first + 1, len(spans)):
            shared = sum(both(spans[first], spans[second], at) for at in range(400))
            longest = max(longest, shared)
    for at in range(400):
        pairs = ((a, b) for b in range(len(spans)) for a in range(b))
        two += any(both(spans[a], spans[b], at) for a, b in pairs)
        leads = any(start <= at < over for start, _, over in spans)
        none += spans[0][0] <= at < last and not leads
    late = sum(at > one["told"] for one in truth if one["told"] is not None for at in one["beats"])
    return {
        "reigns": len(truth),
        "overlap_longest_s": longest / 1000,
        "overlap_total_s": two / 1000,
        "without_leader_s": none / 1000,
        "beats_after_stopped": late,
    }


def both(first: tuple[int, int, int], second: tuple[int, int, int], at: int) -> bool:
    """Return whether the earlier leader still works in [at, at + 1) while the later one leads or
    works."""
    return second[0] <= at < first[1] and at < max(second[1], second[2])


def history(ops: list[Op]) -> History:
    return History(ops)
