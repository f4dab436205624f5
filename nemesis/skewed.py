"""Checks whether a clock is off as it was set, in bounds narrowed by repeated readings.

A reading of a clock gives bounds of its offset, never a number, because reading takes time, and
some servers show whole seconds. If the offset is constant, it lies within the bounds of all
readings, and is soon known to some ms: one reading is just before the second changes, another just
after. A skew is not proved by readings that would also fit a right clock.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from fencepost.nemesis.nemesis import Receipt
from fencepost.nemesis.site import Clocked, Hidden

# Longer than the second that the coarsest clock takes to show the next.
_PATIENCE_S = 1.5
# On an overloaded machine a reading takes up to a second and is imprecise, and only one that meets
# the change of a second narrows the bounds. This many are taken in any case, for at most this much
# longer: with 40, etcd's wall clock was once known to 104 ms only.
_LOOKS, _LONGER_S = 400, 15.0
_AGAIN_S = 0.1
# libfaketime's file has microseconds, and a kernel's coarse clock lags by up to a tick.
_SLACK_S = 0.001
# The narrowest bounds that are waited for, and the widest that suffice.
_FINEST_S, _COARSEST_S = 0.004, 1.2
# Readings closer together show little of a rate.
_APART_S = 0.25


@dataclass(frozen=True)
class Bounds:
    """A reading of a clock: when it began and ended (this program's own seconds), and its offset.

    The clock was read at some moment between the two: each offset is a bound, as each time is.
    """

    began_s: float
    ended_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True)
class Proof:
    """Whether a clock is as it was set (None: it is not shown), and the readings in words."""

    right: bool | None
    seen: str
    low_s: float | None = None
    high_s: float | None = None


@dataclass(frozen=True)
class Look:
    """A process' clock to read. `from_s`: its offset when the mark was taken."""

    process: Clocked
    clock: str
    mark: dict[str, Any]
    from_s: float = 0.0

    def __call__(self) -> Bounds:
        began_s = time.monotonic()
        low_s, high_s = self.process.look_at_clock(self.clock, self.mark)
        return Bounds(began_s, time.monotonic(), low_s + self.from_s, high_s + self.from_s)


class _Patience:
    """How long to keep reading: for some time, and on a slow machine for some readings."""

    def __init__(self, time_s: float) -> None:
        self._end = time.monotonic() + time_s
        self._looks = 0

    def left(self) -> bool:
        over_s = time.monotonic() - self._end
        return over_s < 0 or (self._looks < _LOOKS and over_s < _LONGER_S)

    def look(self, look: Look) -> Bounds:
        """Take one reading; retry without an answer, which a busy server may give later.

        Raises:
            Hidden: the clock is not shown.
            Exception: any error of the last attempt.
        """
        while True:
            self._looks += 1
            try:
                return look()
            except Hidden:
                raise
            except Exception:  # of a Site: the harness' errors, which this file cannot name
                if time.monotonic() >= self._end:
                    raise
                time.sleep(_AGAIN_S)


def stands(look: Look, offset_s: float, step_s: float) -> Proof:
    """Check that the offset is this one, and known much more precisely than the step that was
    taken."""
    enough_s = min(max(step_s / 4, _FINEST_S), _COARSEST_S)
    patience = _Patience(_PATIENCE_S)
    low_s, high_s = -math.inf, math.inf
    try:
        while high_s - low_s > enough_s and patience.left():
            seen = patience.look(look)
            low_s, high_s = max(low_s, seen.low_s), min(high_s, seen.high_s)
            if low_s - _SLACK_S > offset_s or high_s + _SLACK_S < offset_s:
                break
    except Hidden as why:
        return Proof(None, f"not shown: {why}")
    near = low_s - _SLACK_S <= offset_s <= high_s + _SLACK_S
    right = near and high_s - low_s <= enough_s
    return Proof(right, _words(low_s, high_s), low_s, high_s)


def drifts(look: Look, rate: float) -> Proof:
    """Check that the offset grows as it would at this rate, and not as at the right one."""
    enough = abs(rate - 1) / 2
    patience = _Patience(2 * _PATIENCE_S)
    looks: list[Bounds] = []
    low, high = -math.inf, math.inf
    try:
        while high - low > enough and patience.left():
            new = patience.look(look)
            for old in looks:
                if new.began_s - old.ended_s < _APART_S:
                    break
                slowest, fastest = _grew(old, new)
                low, high = max(low, slowest), min(high, fastest)
            looks.append(new)
            time.sleep(0.01)
    except Hidden as why:
        return Proof(None, f"not shown: {why}")
    slack = enough / 5
    right = high - low <= enough and low - slack <= rate - 1 <= high + slack
    seen = f"a rate from {1 + low:.3f} to {1 + high:.3f}"
    return Proof(right, seen, looks[-1].low_s, looks[-1].high_s)


def _grew(old: Bounds, new: Bounds) -> tuple[float, float]:
    """Return bounds of how much the offset grew in a second between two readings."""
    least_s, most_s = new.began_s - old.ended_s, new.ended_s - old.began_s
    low_s, high_s = new.low_s - old.high_s, new.high_s - old.low_s
    return (
        low_s / (most_s if low_s > 0 else least_s),
        high_s / (least_s if high_s > 0 else most_s),
    )


def strobes(look: Look, offset_s: float, period_s: float) -> Proof:
    """Check that the clock is seen off, and right, and off again or right again, in turns."""
    patience = _Patience(max(2 * _PATIENCE_S, 6 * period_s))
    seen: list[bool] = []
    try:
        while len(seen) < 4 and patience.left():
            bounds = patience.look(look)
            off, right = (_fits(bounds, wanted_s) for wanted_s in (offset_s, 0.0))
            if off != right and seen[-1:] != [off]:
                seen.append(off)
            time.sleep(min(period_s / 5, 0.02))
    except Hidden as why:
        return Proof(None, f"not shown: {why}")
    turns = ", ".join(f"{offset_s:+.3f} s" if off else "right" for off in seen)
    return Proof(len(seen) == 4, turns or "neither right nor off")


def _fits(bounds: Bounds, offset_s: float) -> bool:
    return bounds.low_s - _SLACK_S <= offset_s <= bounds.high_s + _SLACK_S


def _words(low_s: float, high_s: float) -> str:
    if math.isinf(high_s - low_s):
        return "nothing"
    return f"{(low_s + high_s) / 2:+.3f} s (±{(high_s - low_s) / 2:.3f})"


def receipt(what: str, nodes: list[dict[tuple[str, str], Proof]]) -> Receipt:
    """Return the receipt, proved if each node shows a clock, each clock is shown by a node, and all
    are as set.

    Not every node shows every clock: only etcd's leader shows its monotonic clock.
    """
    proofs = {key: proof for node in nodes for key, proof in node.items()}
    shown = {key: proof for key, proof in proofs.items() if proof.right is not None}
    proved = (
        all(proof.right for proof in shown.values())
        and {node for node, _ in shown} == {node for node, _ in proofs}
        and {clock for _, clock in shown} == {clock for _, clock in proofs}
        and bool(shown)
    )
    how = "; ".join(f"{node}, {clock}: {proof.seen}" for (node, clock), proof in proofs.items())
    data: dict[str, Any] = {}
    for (node, clock), proof in proofs.items():
        bounds = [proof.low_s, proof.high_s] if proof.low_s is not None else None
        data.setdefault(node, {})[clock] = bounds
    return Receipt(proved, f"{what}; {how}", {"offset_bounds_s": data})
