"""Explains overlaps: why the first holder continued, and why the service granted the lock again.

A chain of links, in words and as data. A link is *sure* if the history itself shows it: a pause
with its receipt, an expired lease, two grants by one server. It is *likely* if it follows from a
fault's possible effects, or from a release: that server-1's clock jumped and that server-1 granted
both is in the history; that the jump made it forget the first grant is not. If nothing in the
history explains the overlap, the chain says so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, Literal

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.faults import Fault, faults, over_time
from fencepost.checker.facts.hold_events import HoldEvents, trusted_hold_events
from fencepost.checker.facts.holds import FOREVER, Hold, facts, holds, seconds
from fencepost.checker.facts.overlaps import Overlap, overlaps_of
from fencepost.checker.facts.releases import Release, releases
from fencepost.checker.facts.spans import Spans
from fencepost.checker.facts.writes import owners
from fencepost.checker.history.history import History

Sort = Literal[
    "lease-over",
    "kept-by-fault",
    "kept-on",
    "counted-late",
    "extend-failed",
    "forgot",
    "stolen",
    "granted-both",
    "none",
]

_RANK: Sequence[Sort] = (
    "forgot",
    "stolen",
    "extend-failed",
    "counted-late",
    "kept-by-fault",
    "kept-on",
    "none",
    "granted-both",
    "lease-over",
)
"""Links by their priority in a summary."""
_MOST = 3
"""Largest number of faults named as possible causes."""


@dataclass(frozen=True)
class Link:
    """One link: `what` happened at `time_ns`; `family` of the fault and `nodes`, if it names one;
    `short` is the summary's phrase."""

    sort: Sort
    what: str
    time_ns: float
    sure: bool = True
    family: str = ""
    nodes: tuple[str, ...] = ()
    short: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "sort": self.sort,
            "what": self.what,
            "time_ns": None if self.time_ns == FOREVER else int(self.time_ns),
            "sure": self.sure,
            **({"family": self.family} if self.family else {}),
            **({"nodes": list(self.nodes)} if self.nodes else {}),
        }


def as_sentences(links: Sequence[Link]) -> str:
    """Return a chain as the end of a paragraph; '' if it is empty."""
    return "".join(f" {link.what}." for link in links)


def cause(links: Sequence[Link]) -> dict[str, Any]:
    """Return a chain as a field of evidence; {} if it is empty."""
    return {"cause": [link.to_json() for link in links]} if links else {}


def headline(links: Sequence[Link]) -> str:
    """Return a chain in a few words, for a summary; '' if it is empty."""
    if not links:
        return ""
    best = min(links, key=lambda link: _RANK.index(link.sort))
    return f" ({best.short})" if best.short else ""


class Causes:
    """Finds the causes of overlaps in a history."""

    def __init__(self, history: History, test: Mapping[str, Any]) -> None:
        self._servers = frozenset(test.get("servers") or ())
        self._on: Spans[Fault] = over_time(faults(history))
        self._history, self._test, self._clocks = history, test, Clocks(test)
        self._late: dict[str, _Late] | None = None
        self._named: dict[str, Hold] | None = None
        self._clashes: dict[int, Overlap] = {}

    def overlap(self, first: Hold, second: Hold, at: float) -> list[Link]:
        """Return why `second` was granted the lock at time `at`, during `first`."""
        over = _lease_end(first, at)
        if over <= at:
            return self.kept(first, at)
        granted = self.granted(first, second)
        # A holder that sees no lease, but for example a session, also depends on events at the
        # servers.
        kept = self.kept(first, at) if over == FOREVER else []
        return kept + [link for link in granted if link.sort != "none" or not kept]

    def worked(self, name: str | None, at: float) -> list[Link]:
        """Return why the holder named still worked under its hold at time `at`.

        Its lease had expired, or another hold was granted during it. Empty if neither holds, or if
        the history has no such hold.
        """
        if self._named is None:
            found = holds(self._history, self._test)
            self._named = owners(found)
            for clash in overlaps_of(self._history, self._test, "believed", self._clocks):
                self._clashes.setdefault(clash.first.index, clash)
                self._clashes.setdefault(clash.second.index, clash)
        hold = self._named.get(name or "")
        if hold is None:
            return []
        if _lease_end(hold, at) <= at:
            return self.kept(hold, at)
        met = self._clashes.get(hold.index)
        if met is None or met.start > at:
            return []
        return self.overlap(met.first, met.second, met.start)

    def kept(self, hold: Hold, at: float) -> list[Link]:
        """Return why `hold` was not given up by time `at`, when its lease may have expired."""
        over = _lease_end(hold, at)
        found: list[Link] = []
        if over <= at:
            found.append(
                Link(
                    "lease-over", f"The lease of hold {hold.name} expired at {seconds(over)}", over
                )
            )
        since = min(over, at)
        struck = self._nearest(lambda fault: _keeps(fault, hold.node), hold.asked, since, at)
        found += [
            Link(
                "kept-by-fault",
                f"This kept {hold.node} from giving it up: {_lasting(fault)}",
                fault.start,
                sure=fault.proved,
                family=fault.family,
                nodes=_client(hold),
                short=f"likely: {fault.what}",
            )
            for fault in struck
        ]
        if not struck and over <= at:
            found.append(
                Link(
                    "kept-on",
                    f"No fault kept {hold.who} from giving it up in the {_length(at - over)} since",
                    over,
                    nodes=_client(hold),
                    short="its holder kept it past its lease",
                )
            )
        return found

    def granted(self, first: Hold, second: Hold) -> list[Link]:
        """Return why the service granted the lock to `second` while the lease of `first` ran."""
        both = sorted(set(first.granted_by) & set(second.granted_by))
        found: list[Link] = []
        if both:
            found.append(_both(first, second, both))
        if _lease_end(second, second.start) <= second.start:
            # Its own lease had expired, so the first one's lease explains nothing.
            found += self.kept(second, second.start)
        else:
            found += self._counted_late(first)
        if second.asked < first.start:
            # Its grant may precede the first one's, but have been answered later.
            found += self._counted_late(second)
        found += self._tried(first, second)
        found += self._stolen(first, second)
        found += self.forgot(first, second, both)
        if not any(link.sort != "granted-both" for link in found):
            words = (
                f"Nothing in the history explains why the lock was granted to {second.who} again"
            )
            found.append(Link("none", words, second.start, sure=False, short="not explained"))
        return found

    def _counted_late(self, hold: Hold) -> list[Link]:
        """Link a lease counted late: it may begin at the server as soon as the request is sent."""
        if hold.ttl is None or hold.deadline == FOREVER or hold.renewals or hold.extends:
            return []
        since = hold.deadline - hold.ttl
        # The rounding of a client or its clock is not a cause.
        rounded = hold.ttl / 20
        if since <= hold.asked + rounded:
            return []
        answered = since >= hold.start - rounded
        since = hold.start if answered else since
        begun = "the answer" if answered else seconds(since)
        what = (
            f"Process {hold.process} counts the lease of {_length(hold.ttl)} from {begun}, "
            f"{_length(since - hold.asked)} after it had asked"
        )
        short = f"its holder counts its lease {'from the answer' if answered else 'late'}"
        links = [Link("counted-late", what, since, nodes=_client(hold), short=short)]
        struck = self._nearest(lambda f: _keeps(f, hold.node), hold.asked, hold.asked, hold.start)
        links += [
            Link(
                "counted-late",
                f"The answer was late because of a fault: {_lasting(fault)}",
                fault.start,
                sure=False,
                family=fault.family,
                nodes=_client(hold),
            )
            for fault in struck
        ]
        return links

    def _tried(self, first: Hold, second: Hold) -> list[Link]:
        """Link extends of `first` that were not answered ok, which may have had any effect."""
        calls = self._hold_events().own.get(first.index, ())
        tried = [
            call
            for call in calls
            if call.begin.f == "extend" and call.type != "ok" and call.begin.time <= second.start
        ]
        return [
            Link(
                "extend-failed",
                f"An extend that was not answered ok may have freed it: {first.who} asked for it "
                f"at {seconds(call.begin.time)}",
                call.begin.time,
                sure=False,
                nodes=_client(first),
                short="likely freed by its own failed extend",
            )
            for call in tried[-1:]
        ]

    def _hold_events(self) -> HoldEvents:
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
                nodes=_client(release.hold),
                short="likely freed by a late release of another hold",
            )
            for release in islice(found, 1)
        ]

    def forgot(self, first: Hold, second: Hold, both: Sequence[str] = ()) -> list[Link]:
        """Link faults by which a server may have lost the grant of `first`, or ended it early."""

        def may(fault: Fault) -> bool:
            if not fault.forgets:
                return False
            hit = set(fault.targets) & (set(both) or self._servers)
            return bool(hit) or not (self._servers or both)

        struck = [f for f in self._on.touching(first.asked, second.start) if may(f)]
        return [
            Link(
                "forgot",
                f"A server may have forgotten it, or ended it early: {_lasting(fault)}",
                fault.start,
                sure=False,
                family=fault.family,
                nodes=tuple(fault.targets),
                short=f"likely: {fault.what}",
            )
            for fault in struck[-_MOST:]
        ]

    def _late_releases(self, lock: str) -> _Late | None:
        if self._late is None:
            found = holds(self._history, self._test)
            rows: dict[str, list[Release]] = {}
            struck = faults(self._history)
            for release in releases(found, self._hold_events(), self._test, struck, self._clocks):
                took = (release.answered or release.sent).time
                if release.call.type != "fail" and release.over_by <= took:
                    rows.setdefault(release.hold.lock, []).append(release)
            self._late = {lock: _Late(row) for lock, row in rows.items()}
        return self._late.get(lock)

    def _nearest(
        self, may: Callable[[Fault], bool], begin: float, since: float, until: float
    ) -> list[Fault]:
        """Return faults active between `since` and `until`; else the last one after `begin`.

        One that had just ended may have had its effect until then.
        """
        on = [fault for fault in self._on.touching(since, until) if may(fault)]
        earlier = [fault for fault in self._on.touching(begin, since) if may(fault)]
        return on[:_MOST] or earlier[-1:]


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


def causes(history: History, test: Mapping[str, Any]) -> Causes:
    """Return the causes of a history, built once."""
    key = "causes", Clocks(test).key, facts(test)
    return history.once(key, lambda: [Causes(history, test)])[0]


def _both(first: Hold, second: Hold, both: Sequence[str]) -> Link:
    words = (
        f"Hold {first.name} was granted by {_listed(first.granted_by)}, hold {second.name} by "
        f"{_listed(second.granted_by)}: {_listed(both)} granted both"
    )
    return Link("granted-both", words, second.start, nodes=tuple(both))


def _client(hold: Hold) -> tuple[str, ...]:
    return (hold.node,) if hold.node else ()


def _keeps(fault: Fault, node: str | None) -> bool:
    """Return whether a fault stops a client or disrupts its communication."""
    if node is None:
        return False
    impaired = fault.targets if fault.impairs is None else fault.impairs
    return node in impaired or any(node in link for link in fault.links or ())


def _lease_end(hold: Hold, at: float) -> float:
    """Return when the lease that ran before that time ended."""
    return max((end for start, end in hold.leases if start <= at), default=hold.deadline)


def _lasting(fault: Fault) -> str:
    until = "" if fault.end is None else f" to {seconds(fault.end)}"
    return f"{fault.what} (from {seconds(fault.start)}{until})"


def _length(time_ns: float) -> str:
    return f"{time_ns / 1e9:.3f} s"


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
