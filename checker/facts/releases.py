"""Releases that may have ended another process' hold.

A release takes effect between its invocation and its answer; without an answer, at any time after
its invocation. While its client is stopped between check and delete, it has not taken effect. It
steals the lock if its own hold had ended and another had been granted the lock by then.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from msgspec import Struct

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.early_losses import Loss
from fencepost.checker.facts.faults import Fault, stopped_at
from fencepost.checker.facts.hold_events import HoldEvents, ends
from fencepost.checker.facts.holds import FOREVER, Hold
from fencepost.checker.history.history import Call, Op

_UNSENT = ("between-check-and-delete", "before-release")
"""A client stopped at one of these failpoints has yet to send the op that ends a hold."""


class Release(Struct, frozen=True, gc=False):
    """A release that happened or may have, and facts about its hold that do not depend on it.

    since: when it took effect at the earliest: when it was sent, or its stopped client resumed.
    over_by: by when its hold had certainly ended; on_until: until when its hold certainly lasted.
    foreign: it is another process' hold.
    """

    call: Call
    hold: Hold
    since: int
    over_by: float
    on_until: float
    foreign: bool = False

    @property
    def sent(self) -> Op:
        return self.call.begin

    @property
    def answered(self) -> Op | None:
        """Return its answer if it was ok; None if the time of its effect is unknown."""
        return self.call.end if self.call.type == "ok" else None

    @property
    def late(self) -> bool:
        """Return whether it took effect, if at all, when its own hold had certainly ended."""
        return self.over_by <= self.since

    @property
    def held_back(self) -> bool:
        return self.since > self.sent.time


def releases(
    found: Iterable[Hold],
    events: HoldEvents,
    test: Mapping[str, Any],
    struck: Iterable[Fault],
    clocks: Clocks,
) -> Iterator[Release]:
    """Return every release, refused ones too."""
    stops = stopped_at(struck, *_UNSENT)
    for hold in found:
        ended_by = began = FOREVER
        calls = events.own.get(hold.index, ())
        for place, call in enumerate(calls):
            if call.begin.f != "release":
                continue
            since = _since(call, stops, clocks)
            on_until = min(began, _unseen_lease(hold, calls[:place]))
            yield _release(call, hold, since, events.lost.get(hold.index), ended_by, on_until)
            if ends(call, test):
                began = min(began, call.begin.time)
                if call.type != "info" and call.end is not None:
                    ended_by = min(ended_by, call.end.time)
    for call, hold in events.foreign:
        yield _foreign(call, hold, _since(call, stops, clocks), events, test)


def _since(call: Call, stops: Mapping[Any, Iterable[tuple[int, int]]], clocks: Clocks) -> int:
    """Return when a release took effect at the earliest, by the clock of its own client."""
    sent, bound = call.begin.time, clocks.bound(call.begin.node)
    for stopped, went_on in stops.get(call.begin.process, ()):
        over = call.end is not None and call.end.time + bound < went_on
        if sent + bound <= stopped and not over:
            return max(sent, went_on - bound)
    return sent


def _unseen_lease(hold: Hold, calls: Iterable[Call]) -> float:
    """Return until when a lease without a deadline certainly runs after these calls of its holder:
    for the ttl of each request that was answered ok. FOREVER if it has a deadline or no ttl."""
    if hold.deadline < FOREVER or hold.ttl is None:
        return FOREVER
    until = hold.asked + hold.ttl
    for call in calls:
        begin, ttl = call.begin, call.begin.value.get("ttl")
        if begin.f != "extend" or call.type == "fail" or ttl is None or begin.time > until:
            continue
        until = begin.time + ttl if call.type == "ok" else min(until, begin.time + ttl)
    return until


def _release(
    call: Call, hold: Hold, since: int, lost: Op | None, ended_by: float, on_until: float
) -> Release:
    """Build a release. `ended_by`, `on_until`: by when the releases of this hold before this one
    had ended it, and until when neither they nor a lease without a deadline had."""
    sent = call.begin
    leases = [until for since, until in hold.leases if since <= sent.time]
    lease = leases[-1] if leases else hold.deadline
    reported = FOREVER if lost is None else lost.time
    known = reported if lost is not None and lost.index < sent.index else FOREVER
    return Release(
        call=call,
        hold=hold,
        since=since,
        over_by=min(lease, ended_by, known),
        on_until=min(lease, on_until, reported, hold.may_end),
    )


def _foreign(
    call: Call, hold: Hold, since: int, events: HoldEvents, test: Mapping[str, Any]
) -> Release:
    """Build a release of another process' hold."""
    calls = events.own.get(hold.index, ())
    own = [one for one in calls if ends(one, test)]
    lost = events.lost.get(hold.index)
    over = [one.end.time for one in own if one.type != "info" and one.end is not None]
    reported = [] if lost is None else [lost.time]
    lease = min(hold.deadline, _unseen_lease(hold, calls))
    return Release(
        call=call,
        hold=hold,
        since=since,
        over_by=min([hold.deadline, *over, *reported]),
        on_until=min([lease, hold.may_end, *(one.begin.time for one in own), *reported]),
        foreign=True,
    )


def doubt(release: Release, loss: Loss, clocks: Clocks) -> str | None:
    """Return why it is uncertain whether a release ended the lost hold: "" if it is certain as far
    as can be seen from the outside, None if the release ended its own hold."""
    if _own(release, loss, clocks):
        return None
    if release.answered is None:
        return "the outcome of that release is unknown"
    if _before_loss(release, loss, clocks) and _stole(release, release.answered, loss, clocks):
        return ""
    return "that release may have come during its own hold, or before the other was granted"


def possible(release: Release, loss: Loss, clocks: Clocks) -> bool:
    """Return whether this release, not refused, may have ended a hold: it may have come between the
    last request that the hold certainly outlived and its loss."""
    if clocks.before(loss.shown, release.sent):
        return False
    if release.held_back and loss.shown.time + _gap(release, loss.shown, clocks) < release.since:
        return False
    return release.answered is None or not clocks.before(release.answered, loss.outlived)


def _own(release: Release, loss: Loss, clocks: Clocks) -> bool:
    """Return whether it ended its own hold: it was answered during its hold; or it was sent then,
    and the other was granted the lock then, by this release or by a double grant."""
    if release.foreign:
        return False
    if release.answered is not None and release.answered.time <= release.on_until:
        return True
    return (
        _conflict(release, loss)
        and release.since < release.on_until
        and clocks.between(release.sent.node, loss.granted.node) + loss.granted.time
        < release.on_until
    )


def _stole(release: Release, answered: Op, loss: Loss, clocks: Clocks) -> bool:
    """Return whether this release certainly came too late.

    Either it took effect after its own hold had ended and after the victim's later grant; or it was
    answered after that grant, and its own hold had ended before the victim asked.
    """
    # The end of the hold is by its own client's clock, also if another client released it.
    gap = clocks.between(release.hold.node, loss.granted.node)
    if release.over_by + gap < loss.asked.time and clocks.before(loss.granted, answered):
        return True
    given_after = not _conflict(release, loss) or release.on_until + gap <= loss.granted.time
    before = clocks.before(loss.granted, release.sent)
    if release.held_back:
        before = loss.granted.time + _gap(release, loss.granted, clocks) <= release.since
    return release.late and given_after and before


def _before_loss(release: Release, loss: Loss, clocks: Clocks) -> bool:
    """Return whether this release may have taken effect before the loss was seen, whatever the
    clocks."""
    if release.held_back:
        return release.since + _gap(release, loss.shown, clocks) <= loss.shown.time
    return clocks.before(release.sent, loss.shown)


def _gap(release: Release, op: Op, clocks: Clocks) -> int:
    return clocks.between(release.sent.node, op.node)


def _conflict(release: Release, loss: Loss) -> bool:
    return not (release.hold.shared and loss.hold.shared)


class Suspects:
    """The releases of each lock in order of time, to find those near a loss quickly. One that was
    never answered is near every later loss."""

    def __init__(self, found: Iterable[Release], clocks: Clocks) -> None:
        self._clocks = clocks
        rows: dict[str, list[Release]] = {}
        for release in sorted(found, key=lambda release: release.sent.index):
            if release.call.type != "fail":
                rows.setdefault(release.hold.lock, []).append(release)
        self._locks = {lock: _Row(row) for lock, row in rows.items()}
        nodes = {release.sent.node for row in rows.values() for release in row}
        self._bound = max((clocks.bound(node) for node in nodes), default=0)

    def near(self, loss: Loss) -> Iterator[Release]:
        """Yield those that may have ended a hold that was lost, in order of invocation."""
        row = self._locks.get(loss.hold.lock)
        if row is None:
            return
        since = loss.outlived.time - self._bound - self._clocks.bound(loss.outlived.node)
        until = loss.shown.time + self._bound + self._clocks.bound(loss.shown.node)
        for release in row.within(since, until):
            if release.hold is not loss.hold and possible(release, loss, self._clocks):
                yield release


class _Row:
    """Releases in order of invocation."""

    def __init__(self, found: list[Release]) -> None:
        answered = [release for release in found if release.answered is not None]
        self._open = [release for release in found if release.answered is None]
        self._answered = answered
        self._sent = [release.sent.time for release in answered]
        # The latest answer in every prefix of the list.
        self._last = list(accumulate((r.answered.time for r in answered if r.answered), max))

    def within(self, since: float, until: float) -> Iterator[Release]:
        """Yield those answered at `since` or later and sent by `until`; then those never
        answered."""
        end = bisect_right(self._sent, until)
        first = bisect_left(self._last, since, 0, end)
        yield from self._answered[first:end]
        for release in self._open:
            if release.sent.time > until:
                return
            yield release
