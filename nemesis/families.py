"""The fault families by name: what injects each, how one is drawn, and what it can not be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from fencepost.nemesis import (
    clock,
    cpu,
    disk,
    failover,
    hold,
    kill,
    leave,
    memory,
    packet,
    partition,
    pause,
    power,
)
from fencepost.nemesis.aim import PRIMARY, Drawn, Layout, named
from fencepost.nemesis.asked import Asked, parse
from fencepost.nemesis.chains import Chains
from fencepost.nemesis.nemesis import Fault, Nemesis
from fencepost.nemesis.site import Site


def _nothing(at: Layout, targets: list[str], arguments: dict[str, Any]) -> str:
    return ""


def _always(at: Layout, asked: Asked) -> str:
    return ""


def _replicated(at: Layout, asked: Asked) -> str:
    return (
        ""
        if at.replicated
        else "a lock on one server can not fail over; these are: redis-replicated"
    )


def _redis(at: Layout, asked: Asked) -> str:
    return "" if at.kind == "redis" else f"it limits Redis servers, and these are of {at.kind}"


def _targets(targets: list[str], arguments: dict[str, Any]) -> list[str]:
    return targets


def _nobody(targets: list[str], arguments: dict[str, Any]) -> list[str]:
    return []


def _no_links(targets: list[str], arguments: dict[str, Any]) -> list[list[str]]:
    return []


@dataclass(frozen=True)
class Family:
    """A fault family. `receipt`: what proves that a fault took hold.

    `targets`: the names that it knows beside those of nodes (`aims`: servers, clients, or both).
    `variants`: how it can strike. `lacks` says why a layout can not have what is asked, `refuse`
    why one fault makes no sense; both '' where they do. `moment` waits for the right moment before
    the fault is ordered; `over` tells when it is to end before its time. `own` says whether a
    target can bear no second fault at the same time.

    What a checker may conclude from a fault, all of it written into the history: `impairs` gives
    the nodes that cannot answer, or not in time, while it is on; `links` the pairs of nodes that
    it keeps apart; `forgets` says whether servers may lose by it what they have granted, or end it
    before its time.
    """

    name: str
    what: str
    receipt: str
    make: Callable[[Site, Chains], Nemesis]
    draw: Callable[[Random, Layout, Asked], list[Drawn]]
    targets: tuple[str, ...] = ()
    aims: str = "servers"
    variants: tuple[str, ...] = ()
    lacks: Callable[[Layout, Asked], str] = _always
    refuse: Callable[[Layout, list[str], dict[str, Any]], str] = _nothing
    moment: Callable[[Site, Fault], None] | None = None
    over: Callable[[Site, Fault], Callable[[], bool] | None] | None = None
    own: bool = True
    impairs: Callable[[list[str], dict[str, Any]], list[str]] = _targets
    links: Callable[[list[str], dict[str, Any]], list[list[str]]] = _no_links
    forgets: bool = False

    def nodes(self, at: Layout) -> list[str]:
        """The nodes that a fault of this family may be aimed at."""
        servers = at.servers if "servers" in self.aims else []
        return [*servers, *(at.clients if "clients" in self.aims else [])]


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "partition",
            "links between nodes are cut with iptables, by shape; drop or reject; one way or both",
            "a probe across each cut link gets no answer, and at the end one does; of one way, "
            "datagrams that the receiver's chain counts",
            lambda site, chains: partition.Partition(site, chains),
            partition.draw,
            targets=partition.SHAPES,
            aims="servers and clients",
            variants=partition.HOW,
            lacks=partition.lacks,
            refuse=partition.refuse,
            own=False,
            impairs=partition.impairs,
            links=partition.links,
        ),
        Family(
            "hold",
            "packets of one direction are held back and arrive later",
            "a probe gets no answer; at the end a probe gets one, and the packets held are counted",
            lambda site, chains: hold.Hold(site, chains),
            hold.draw,
            targets=("storage",),
            aims="servers and clients",
            refuse=hold.refuse,
            own=False,
            impairs=hold.impairs,
            links=hold.links,
        ),
        Family(
            "packet",
            "packets are late, lost, doubled or out of order (netem)",
            "the queue that the kernel shows; without sch_netem there is none, and no receipt",
            lambda site, chains: packet.Packet(site),
            packet.draw,
            targets=packet.TARGETS,
            aims="servers and clients",
            variants=tuple(packet.KINDS),
            refuse=packet.refuse,
        ),
        Family(
            "pause",
            "SIGSTOP of servers, or of a client at a named point or until another holds the lock",
            "the process is in state T; at the end, it is not",
            lambda site, chains: pause.Pause(site),
            pause.draw,
            targets=pause.TARGETS,
            aims="servers and clients",
            variants=pause.VARIANTS,
            refuse=pause.refuse,
            moment=pause.await_point,
            over=pause.held,
        ),
        Family(
            "clock",
            "clocks of servers and clients jump, drift, strobe",
            "the clock as the server or client itself shows it",
            lambda site, chains: clock.Clock(site),
            clock.draw,
            targets=clock.TARGETS,
            aims="servers and clients",
            variants=("jump", "drift", "strobe", "+OFFSET", "-OFFSET"),
            refuse=clock.refuse,
            impairs=_nobody,  # it answers, and wrongly
            forgets=True,
        ),
        Family(
            "kill",
            "SIGKILL and restart of servers or a client, the data kept or wiped",
            "the pid is gone; at the end, the server serves again",
            lambda site, chains: kill.Kill(site),
            kill.draw,
            targets=kill.TARGETS,
            aims="servers and clients",
            variants=kill.VARIANTS,
            refuse=kill.refuse,
            forgets=True,
        ),
        Family(
            "power",
            "servers lose power: what they had not synced is gone",
            "of two files on the server's disk the synced one is left, and the other is not",
            lambda site, chains: power.Power(site),
            power.draw,
            targets=power.TARGETS,
            variants=power.VARIANTS,
            forgets=True,
        ),
        Family(
            "failover",
            "the primary of a replicated Redis dies, and its replica is promoted",
            "the pid is gone and the replica says that it is master",
            lambda site, chains: failover.Failover(site),
            failover.draw,
            aims="",
            lacks=_replicated,
            forgets=True,
        ),
        Family(
            "leave",
            "a server leaves the cluster, and comes back with an empty disk",
            "its pid and its data are gone, the others' list of members is without it; at the end "
            "it has another identity",
            lambda site, chains: leave.Leave(site),
            leave.draw,
            targets=leave.TARGETS,
            lacks=leave.lacks,
            refuse=leave.refuse,
            forgets=True,
        ),
        Family(
            "memory",
            "a Redis server runs into its memory limit, and evicts keys or refuses writes",
            "keys that it says were evicted, or a write that it refused",
            lambda site, chains: memory.Memory(site),
            memory.draw,
            targets=("one",),
            variants=memory.POLICIES,
            lacks=_redis,
            refuse=memory.refuse,
            forgets=True,
        ),
        Family(
            "disk",
            "a server's disk is full",
            "no byte is left on it, and a write of one fails",
            lambda site, chains: disk.Disk(site),
            disk.draw,
            targets=disk.TARGETS,
            forgets=True,  # a server may end on it (PostgreSQL), and every session with it
        ),
        Family(
            "cpu",
            "a server gets very little CPU time, by a cgroup's quota",
            "the quota of the cgroup that it is in, which throttles a loop there",
            lambda site, chains: cpu.Cpu(site),
            cpu.draw,
            targets=cpu.TARGETS,
            refuse=cpu.refuse,
        ),
    )
}


def facts(family: str, targets: list[str], arguments: dict[str, Any]) -> dict[str, Any]:
    """What follows from a fault: `impairs`, `links`, `forgets`; empty for an unknown family."""
    if family not in FAMILIES:
        return {}
    found = FAMILIES[family]
    return {
        "impairs": found.impairs(targets, arguments),
        "links": found.links(targets, arguments),
        "forgets": found.forgets,
    }


def check(entries: Iterable[str], at: Layout) -> list[Asked]:
    """What `--nemesis` asks for, if this layout can bear it.

    Raises:
        ValueError: saying what it can not, and what there is instead.
    """
    return [_check(parse(entry), at) for entry in entries]


def _check(asked: Asked, at: Layout) -> Asked:
    family = FAMILIES.get(asked.family)
    if family is None:
        known = ", ".join(FAMILIES)
        raise ValueError(f"there is no nemesis {asked.family!r}; choose one of: {known}")
    why = named(asked, family.targets, at, family.nodes(at)) or _variant(family, asked)
    why = why or family.lacks(at, asked)
    if not why:
        try:
            drawn = family.draw(Random(0), at, asked)
        except ValueError as error:
            why = str(error)
        else:
            refused = (family.refuse(at, one.targets, one.arguments) for one in drawn)
            why = next(filter(None, refused), "")
    if why:
        raise ValueError(f"nemesis {asked.text}: {why}")
    return asked


def _variant(family: Family, asked: Asked) -> str:
    variants = family.variants
    if not asked.variant or asked.variant in variants or "+OFFSET" in variants:
        return ""
    return f"there is no /{asked.variant}; choose one of: {', '.join(variants) or 'none'}"


def refuse(family: str, targets: list[str], arguments: dict[str, Any], at: Layout) -> str:
    """Why a fault that somebody wrote down can not be had of this layout; else ''."""
    if family not in FAMILIES:
        return f"there is no family {family!r}; choose one of: {', '.join(FAMILIES)}"
    strange = set(targets) - {*at.nodes, PRIMARY}
    if strange or not targets:
        return f"the test has no node {min(strange)!r}" if strange else "it has no targets"
    found = FAMILIES[family]
    if PRIMARY in targets and not at.leads:
        return "none of its servers leads: each is on its own"
    # A link ends at a store as well; what has no aim is about all servers.
    may = [*found.nodes(at), PRIMARY, *(() if found.own else at.stores)]
    if wrong := [node for node in targets if found.aims and node not in may]:
        return f"{wrong[0]}: {family} is for {found.aims}"
    return found.lacks(at, Asked(family)) or found.refuse(at, targets, arguments)
