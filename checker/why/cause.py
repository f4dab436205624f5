"""Explains overlaps: why the first holder continued, and why the service granted the lock again.

docs/design.md, section 4, defines which links are sure. If nothing in the history explains the
overlap, the chain says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.holds import FOREVER, Hold, facts, holds
from fencepost.checker.facts.overlaps import Overlap, overlaps_of
from fencepost.checker.facts.writes import owners
from fencepost.checker.history.history import History
from fencepost.checker.why.granted import Granting
from fencepost.checker.why.kept import Keeping, Until, lease_end
from fencepost.checker.why.link import Link, as_sentences, cause, headline

__all__ = ["Causes", "Link", "as_sentences", "cause", "causes", "headline"]


class Causes:
    """Finds the causes of overlaps in a history."""

    def __init__(self, history: History, test: Mapping[str, Any]) -> None:
        self._history, self._test, self._clocks = history, test, Clocks(test)
        self._keeping = Keeping(history, test, self._clocks)
        self._granting = Granting(history, test, self._clocks, self._keeping)
        self._named: dict[str, Hold] | None = None
        self._clashes: dict[int, Overlap] = {}

    def overlap(self, first: Hold, second: Hold, at: float) -> list[Link]:
        """Return why `second` was granted the lock at time `at`, during `first`."""
        over = lease_end(first, at)
        if over <= at:
            return self._keeping.links(first, Until(at))
        granted = self._granting.links(first, second)
        # A holder that sees no lease, but for example a session, also depends on events at the
        # servers.
        kept = self._keeping.links(first, Until(at)) if over == FOREVER else []
        return kept + [link for link in granted if link.sort != "none" or not kept]

    def worked(
        self, name: str | None, at: float, *, sent: float | None = None, since: float | None = None
    ) -> list[Link]:
        """Return why the holder named still worked under its hold at time `at`.

        Its lease had expired, or another hold was granted during it. Empty if neither holds, or if
        the history has no such hold. `sent`: when it sent the write that was accepted by `at`;
        `since`: when that was accepted at the earliest. Both are `at` by default.
        """
        hold = self._holds().get(name or "")
        if hold is None:
            return []
        over = lease_end(hold, at)
        if over <= at:
            begun = at if sent is None else sent
            certain = over <= max(begun, at if since is None else since)
            return self._keeping.links(hold, Until(at, begun, certain))
        met = self._clashes.get(hold.index)
        if met is None or met.start > at:
            return []
        return self.overlap(met.first, met.second, met.start)

    def forgot(self, first: Hold, second: Hold) -> list[Link]:
        """Return the faults by which a server may have lost the grant of `first`."""
        return self._granting.forgot(first, second)

    def _holds(self) -> dict[str, Hold]:
        if self._named is None:
            self._named = owners(holds(self._history, self._test))
            for clash in overlaps_of(self._history, self._test, "believed", self._clocks):
                self._clashes.setdefault(clash.first.index, clash)
                self._clashes.setdefault(clash.second.index, clash)
        return self._named


def causes(history: History, test: Mapping[str, Any]) -> Causes:
    """Return the causes of a history, built once."""
    key = "causes", Clocks(test).key, facts(test)
    return history.once(key, lambda: [Causes(history, test)])[0]
