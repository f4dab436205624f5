"""A fault family: one kind of fault, completely described by one frozen bundle.

Each family has its own file (for example `FAMILY = Family(...)` in nemesis/pause.py). The schedule,
the director, the servers' settings, `fencepost heal`, the checkers, the report and docs/faults.md
read the bundle, so that a new family is a file, and a line in nemesis/families.py. Another package
adds one with an entry point in the group fencepost.faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from fencepost.nemesis.aiming import Aiming
from fencepost.nemesis.axis import FaultAxis
from fencepost.nemesis.chains import Chains
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Leftover, Nemesis
from fencepost.nemesis.site import Remote, Server, Site
from fencepost.nemesis.targets import HOLDER, PRIMARY, Drawn, Layout, holder


@dataclass(frozen=True)
class Colour:
    """A family's colour in the report, on a light page and on a dark one (CSS)."""

    light: str = "#8a8f98"
    dark: str = "#a0a5ad"


@dataclass(frozen=True)
class Column:
    """A column that every matrix has: the `entry` of --nemesis, its title, and how a sentence about
    it begins. `place` orders the columns of all families."""

    entry: str
    title: str
    sentence: str
    place: int


@dataclass(frozen=True)
class Closing:
    """Faults of a holder that end a long run, when all others are healed. Times are in TTLs.

    `arguments` are those of such a fault; None if the layout cannot have it. There are at most
    `most`; each has `takes` for itself, and lasts for `lasts`. A run shorter than `least` has no
    such fault. Those of the family with the lowest `place` come last.
    """

    arguments: Callable[[Layout], dict[str, Any] | None]
    most: int
    takes: float
    lasts: float
    place: int
    least: float = 0.0


@dataclass(frozen=True)
class MachineNeed:
    """A part of the machine that a fault needs. `look` returns whether the machine has it, and the
    part that it found, or the remedy."""

    what: str
    look: Callable[[], tuple[bool, str]]


@dataclass(frozen=True)
class Strike:
    """The possible targets of a fault of a family, by name: the primary may be any of the servers,
    the holder any of the clients."""

    family: str
    nodes: frozenset[str]
    links: frozenset[frozenset[str]]
    arguments: Mapping[str, Any]


def _all(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    """Accept every fault in every layout."""


def _nothing_left(remote: Remote, server: Server | None) -> list[Leftover]:
    return []


def _targets(targets: list[str], arguments: dict[str, Any]) -> list[str]:
    return targets


def _no_links(targets: list[str], arguments: dict[str, Any]) -> list[list[str]]:
    return []


def _stops_none(targets: list[str], arguments: dict[str, Any]) -> list[str]:
    return []


def _meets_none(asked: Asked) -> bool:
    return False


def _with_none(mine: Strike, other: Strike, at: Layout) -> bool:
    return False


@dataclass(frozen=True)
class Family:
    """One kind of fault.

    `what` describes the fault and `receipt` the proof that it took effect, for people.

    Which faults there are:
    - `strikes`: the possible target nodes, of "servers" and "clients"; `targets`: further names for
      them in an entry of --nemesis; `variants`: the variants of the fault.
    - `draw`: the faults of an entry. Raises ValueError if the layout cannot have them.
    - `validate`: raises ValueError if a fault, drawn or written by hand, is invalid there.
    - `closing`: the faults that end a long run.
    - `exclusive`: a node has one fault of all such families at a time. `clashes`: whether a fault
      of this family cannot be active together with another one, beyond that. The schedule separates
      them.

    Which faults `--aim` injects, and where:
    - `aim`: how a fault is drawn for a moment of a hold (nemesis/aiming.py).
    - `meets`: whether a fault of an entry can meet a request of the holder.
    - `points`: whether its faults can wait for a failpoint, "aimed" alone or "always".

    How a fault is carried out:
    - `make`: builds the nemesis. It is called once per run.
    - `holder`: resolves the name `holder` when a fault begins, and describes that client.
    - `moment`: waits for the right moment before a fault is injected. `over`: returns a function
      that tells whether a fault must end early, or None.
    - `needs`: the settings that servers must be started with (node/server.py).
    - `mounts`: it mounts a file system or cgroups in a server's node, which needs more rights then.
    - `machine`: a part of the machine that it needs, which `fencepost doctor` looks for.
    - `lacks`: the variants that a node cannot have. It is called once per node, before a run; an
      entry without a variant draws none of them then.
    - `ours_alone`: why it cannot be injected at external servers; "" if it can.

    Leftovers of a killed run:
    - `leftovers`: leftovers on a node. The server is None on a node without a server.
    - `files`: its own files on a node, which are removed before a run and with the cluster.

    Facts that checkers use, which are written into the history:
    - `impairs`: the nodes that cannot answer, or not in time, while it is active.
    - `links`: the pairs of nodes that it separates.
    - `forgets`: whether servers may lose, or end early, what they have granted.
    - `loses`: whether it loses messages of its targets, by which their connections may end.
    - `stops`: the nodes whose process is stopped, as a whole, for as long as it is active.
    - `only_messages`: whether it acts on messages between nodes alone, and on no process.
    - `rejects`: whether it resets each connection that it cuts, so that no message waits for its
      end.

    Display: `describe` gives a fault as a sentence; `colour` is the report's; `columns` are the
    columns of a matrix that names no faults; `axes`: the properties of a fault that a sweep
    can vary.
    """

    name: str
    what: str
    receipt: str
    make: Callable[[Site, Chains], Nemesis]
    draw: Callable[[Random, Layout, Asked], list[Drawn]]
    describe: Callable[[list[str], dict[str, Any]], str]
    strikes: tuple[str, ...] = ("servers",)
    targets: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    validate: Callable[[Layout, list[str], dict[str, Any]], None] = _all
    exclusive: bool = True
    clashes: Callable[[Strike, Strike, Layout], bool] = _with_none
    closing: Closing | None = None
    aim: Aiming = field(default_factory=Aiming)
    meets: Callable[[Asked], bool] = _meets_none
    points: Literal["", "aimed", "always"] = ""
    holder: Callable[[Site, Fault], tuple[str, str]] = lambda site, fault: holder(site)
    moment: Callable[[Site, Fault], None] | None = None
    over: Callable[[Site, Fault], Callable[[], bool] | None] | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    mounts: bool = False
    machine: MachineNeed | None = None
    lacks: Callable[[Remote], Sequence[str]] | None = None
    ours_alone: str = ""
    leftovers: Callable[[Remote, Server | None], Sequence[Leftover]] = _nothing_left
    files: tuple[str, ...] = ()
    impairs: Callable[[list[str], dict[str, Any]], list[str]] = _targets
    links: Callable[[list[str], dict[str, Any]], list[list[str]]] = _no_links
    forgets: bool = False
    loses: Callable[[list[str], dict[str, Any]], bool] = lambda targets, arguments: False
    stops: Callable[[list[str], dict[str, Any]], list[str]] = _stops_none
    only_messages: bool = False
    rejects: Callable[[list[str], dict[str, Any]], bool] = lambda targets, arguments: False
    colour: Colour = Colour()
    columns: tuple[Column, ...] = ()
    axes: tuple[FaultAxis, ...] = ()

    def nodes(self, at: Layout) -> list[str]:
        """Return the nodes that a fault of this family may be injected at."""
        servers = at.servers if "servers" in self.strikes else []
        return [*servers, *(at.clients if "clients" in self.strikes else [])]

    def strike(self, targets: list[str], arguments: dict[str, Any], at: Layout) -> Strike:
        """Return the possible targets of a fault of this family, whatever node leads or holds a
        lock."""

        def may_be(node: str) -> list[str]:
            return {PRIMARY: at.servers, HOLDER: at.clients}.get(node, [node])

        links = self.links(targets, arguments)
        return Strike(
            self.name,
            frozenset(each for node in targets for each in may_be(node)),
            frozenset(
                frozenset((a, b)) for near, far in links for a in may_be(near) for b in may_be(far)
            ),
            arguments,
        )
