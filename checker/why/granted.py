"""Why did the service grant the lock again while a lease ran?

All of these links are likely: a history shows the events of clients, and none of the servers. Only
that one server granted both holds is sure, where the clients name the servers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.ends import ends_with
from fencepost.checker.facts.faults import Fault, faults, over_time
from fencepost.checker.facts.grant_events import refused
from fencepost.checker.facts.hold_events import trusted_hold_events
from fencepost.checker.facts.holds import FOREVER, Hold, holds, seconds
from fencepost.checker.facts.releases import Release, releases
from fencepost.checker.facts.spans import Spans
from fencepost.checker.history.history import Call, History
from fencepost.checker.why.kept import MOST, NEAR, Keeping, Until, answered_late, arrived_expired
from fencepost.checker.why.link import Link, client, lasting, length, listed

_ROUNDED = 20
"""The rounding of a client or its clock, up to this part of a lease, is not a cause."""


class Granting:
    """Finds why a lock was granted again."""

    def __init__(
        self,
        history: History,
        test: Mapping[str, Any],
        clocks: Clocks,
        keeping: Keeping,
    ) -> None:
        self._history, self._test, self._clocks = history, test, clocks
        self._keeping = keeping
        self._forgetting = over_time(fault for fault in faults(history) if fault.forgets)
        self._servers = frozenset(test.get("servers") or ())
        self._clients = frozenset(test.get("clients") or ()) | frozenset(history.nodes())
        self._late: dict[str, _Late] | None = None
        self._rows: dict[str, Spans[Hold]] | None = None

    def links(self, first: Hold, second: Hold) -> list[Link]:
        """Return why the service granted the lock to `second` while the lease of `first` ran."""
        both = sorted(set(first.granted_by) & set(second.granted_by))
        found: list[Link] = []
        if both:
            found.append(_both(first, second, both))
        if arrived_expired(second, second.start):
            # Its own lease had expired, so the first one's lease explains nothing.
            found += self._keeping.links(second, Until(second.start))
        else:
            found += self._counted_late(first, second)
        if second.asked < first.start:
            # Its grant may precede the first one's, but have been answered later.
            found += self._counted_late(second, first)
        tried, witness = self._extends(first, second)
        found += tried
        found += self._stolen(first, second)
        found += self.forgot(first, second)
        if not any(link.sort != "granted-both" for link in found):
            words = (
                f"Nothing in the history explains why the lock was granted to {second.who} again"
            )
            if witness is not None:
                words += f"; it was gone by {seconds(witness)}, when an extend was refused"
            found.append(Link("none", words, second.start, sure=False, short="not explained"))
        return found

    def _counted_late(self, hold: Hold, other: Hold) -> list[Link]:
        """Link a lease counted late: the service may count it from the request on.

        The other grant must have come when a lease of that length, counted from the request, had
        expired. A client that waited for another's hold counts from a later request than its
        acquire; so does one whose session is renewed while it waits.
        """
        if hold.ttl is None or hold.deadline == FOREVER or hold.renewals or hold.extends:
            return []
        if ends_with(self._test) != "lease" or other.start < hold.asked + hold.ttl:
            return []
        since, rounded = hold.deadline - hold.ttl, hold.ttl / _ROUNDED
        if since <= hold.asked + rounded or self._waited(hold, other):
            return []
        answered = since >= hold.start - rounded
        since = hold.start if answered else since
        begun = "the answer" if answered else seconds(since)
        what = (
            f"Process {hold.process} seems to count its lease of {length(hold.ttl)} from {begun}, "
            f"{length(since - hold.asked)} after it had asked"
        )
        short = f"likely: its holder counts its lease {'from the answer' if answered else 'late'}"
        link = Link("counted-late", what, since, sure=False, nodes=client(hold), short=short)
        late = self._keeping.near(hold, hold.asked, hold.start)
        return [link, *(answered_late("counted-late", hold, fault) for fault in late[:MOST])]

    def _waited(self, hold: Hold, other: Hold) -> bool:
        """Return whether a third client may have held the lock after this one had asked."""
        if self._rows is None:
            rows: dict[str, list[tuple[float, float | None, Hold]]] = {}
            for each in holds(self._history, self._test):
                end = each.gone_by if each.gone_by < FOREVER else None
                rows.setdefault(each.lock, []).append((each.start, end, each))
            self._rows = {lock: Spans(row) for lock, row in rows.items()}
        near = self._rows[hold.lock].latest(hold.asked, hold.start, 3)
        return any(each.index not in (hold.index, other.index) for each in near)

    def _extends(self, first: Hold, second: Hold) -> tuple[list[Link], float | None]:
        """Link the last extend of `first` that may have had any effect, and return when one showed
        that the hold was gone.

        One that was refused as `not-held` comes after the loss, and one that reached no server has
        no effect.
        """
        witness: float | None = None
        tried: Call | None = None
        for call in self._events().own.get(first.index, ()):
            if call.begin.f != "extend" or call.begin.time > second.start or call.type == "ok":
                continue
            if refused(call):
                assert call.end is not None
                witness = call.end.time
                break
            if not _unsent(call):
                tried = call
        if tried is None:
            return [], witness
        link = Link(
            "extend-failed",
            f"An extend that was not answered ok may have freed it: {first.who} asked for it at "
            f"{seconds(tried.begin.time)}",
            tried.begin.time,
            sure=False,
            nodes=client(first),
            short="likely freed by its own failed extend",
        )
        return [link], witness

    def _events(self) -> Any:
        return trusted_hold_events(self._history, self._test, self._clocks)

    def _stolen(self, first: Hold, second: Hold) -> list[Link]:
        """Link releases of other holds, sent or open during `first`."""
        late = self._late_releases(first.lock)
        coming = late.latest(first.asked, second.start) if late else ()
        found = (
            release
            for release in coming
            if release.hold.index not in (first.index, second.index)
            and release.hold.start <= first.start
        )
        return [
            Link(
                "stolen",
                f"A release of another hold may have freed it: {release.hold.who} released hold "
                f"{release.hold.name} at {seconds(release.sent.time)}, which had ended by "
                f"{seconds(release.over_by)}",
                release.sent.time,
                sure=False,
                nodes=client(release.hold),
                short="likely freed by a late release of another hold",
            )
            for release in islice(found, 1)
        ]

    def forgot(self, first: Hold, second: Hold) -> list[Link]:
        """Link faults by which a server may have lost the grant of `first`, or ended it early."""
        near = self._forgetting.latest(first.asked, second.start, NEAR)
        struck = [fault for fault in near if self._granted(first, second, fault)]
        return [
            Link(
                "forgot",
                f"A server may have forgotten it, or ended it early: {lasting(fault)}",
                fault.start,
                sure=False,
                family=fault.family,
                nodes=tuple(fault.targets),
                short=f"likely: {fault.what}",
            )
            for fault in struck[-MOST:]
        ]

    def _granted(self, first: Hold, second: Hold, fault: Fault) -> bool:
        """Return whether a fault hit a server that may have granted both.

        Without a list of servers it is any node that is not known as a client.
        """
        named = [set(hold.granted_by) for hold in (first, second) if hold.granted_by]
        if named:
            return not set.intersection(*named).isdisjoint(fault.targets)
        if self._servers:
            return not self._servers.isdisjoint(fault.targets)
        return not fault.targets or not self._clients.issuperset(fault.targets)

    def _late_releases(self, lock: str) -> _Late | None:
        if self._late is None:
            found = holds(self._history, self._test)
            rows: dict[str, list[Release]] = {}
            struck = faults(self._history)
            for release in releases(found, self._events(), self._test, struck, self._clocks):
                took = (release.answered or release.sent).time
                if release.call.type != "fail" and release.over_by <= took:
                    rows.setdefault(release.hold.lock, []).append(release)
            self._late = {lock: _Late(row) for lock, row in rows.items()}
        return self._late.get(lock)


class _Late:
    """Releases that took effect when their own hold had ended, in order of sending."""

    def __init__(self, found: Iterable[Release]) -> None:
        self._found = sorted(found, key=lambda one: one.sent.time)
        self._sent = [one.sent.time for one in self._found]
        # The latest answer in every prefix of the list.
        answers = (FOREVER if one.answered is None else one.answered.time for one in self._found)
        self._last = list(accumulate(answers, max))

    def latest(self, since: float, until: float) -> Iterator[Release]:
        """Return those open between these times, the last one that was sent first."""
        place = bisect_right(self._sent, until)
        while place and self._last[place - 1] >= since:
            place -= 1
            release = self._found[place]
            if release.answered is None or release.answered.time >= since:
                yield release


def _unsent(call: Call) -> bool:
    error = call.end.error if call.end is not None else None
    return call.type == "fail" and bool(error) and error[0] == "unreachable"  # type: ignore[index]


def _both(first: Hold, second: Hold, both: Sequence[str]) -> Link:
    words = (
        f"Hold {first.name} was granted by {listed(first.granted_by)}, hold {second.name} by "
        f"{listed(second.granted_by)}: {listed(both)} granted both"
    )
    return Link("granted-both", words, second.start, nodes=tuple(both))
