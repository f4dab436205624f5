"""A link of a chain of causes, in words and as data.

A link is *sure* if the history shows it: an expired lease, a client whose process was stopped when
its lease expired and until the time in question, two grants by one server. It is *likely* if the
history only allows it: that server-1's clock jumped and that server-1 granted both is in the
history; that the jump made it forget the first grant is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import FOREVER, Hold, seconds

Sort = Literal[
    "lease-over",
    "expired-grant",
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
    "expired-grant",
    "kept-by-fault",
    "kept-on",
    "none",
    "granted-both",
    "lease-over",
)
"""Links by their priority in a summary."""


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


# The parts of a link's words.


def client(hold: Hold) -> tuple[str, ...]:
    return (hold.node,) if hold.node else ()


def lasting(fault: Fault) -> str:
    until = "" if fault.end is None else f" to {seconds(fault.end)}"
    return f"{fault.what} (from {seconds(fault.start)}{until})"


def length(time_ns: float) -> str:
    return f"{time_ns / 1e9:.3f} s"


def listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
