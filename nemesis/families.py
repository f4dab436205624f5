"""The registry of fault families, and the validation of a test's faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from fencepost.nemesis import (
    cancel,
    clock,
    cpu,
    delay,
    disk,
    failover,
    failpoints,
    fault_spec,
    http,
    kill,
    membership,
    memory,
    packet,
    partition,
    pause,
    power,
)
from fencepost.nemesis.family import Column, Family, Strike
from fencepost.nemesis.fault_spec import Asked, parse
from fencepost.nemesis.site import Remote
from fencepost.nemesis.targets import HOLDER, PRIMARY, Layout, renamed
from fencepost.registry import Registry

FAMILIES: Registry[Family] = Registry(
    "fencepost.faults",
    Family,
    (
        partition.FAMILY,
        delay.FAMILY,
        packet.FAMILY,
        pause.FAMILY,
        clock.FAMILY,
        kill.FAMILY,
        power.FAMILY,
        failover.FAMILY,
        membership.FAMILY,
        memory.FAMILY,
        disk.FAMILY,
        cpu.FAMILY,
        cancel.FAMILY,
        http.FAMILY,
    ),
)


def columns() -> list[Column]:
    """The columns of a matrix that names no faults, in order."""
    found = (column for family in FAMILIES.values() for column in family.columns)
    return sorted(found, key=lambda column: column.place)


def collide(mine: Strike, other: Strike, at: Layout) -> bool:
    """Return whether two faults cannot be active at a time."""
    one, two = FAMILIES[mine.family], FAMILIES[other.family]
    if one.exclusive and two.exclusive and not mine.nodes.isdisjoint(other.nodes):
        return True
    return one.clashes(mine, other, at) or two.clashes(other, mine, at)


def facts(family: str, targets: list[str], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the facts about a fault: `impairs`, `links`, `forgets`, `loses`, `stops`, `rejects`,
    `only_messages`; empty for an unknown family."""
    found = FAMILIES.get(family)
    if found is None:
        return {}
    return {
        "impairs": found.impairs(targets, arguments),
        "links": found.links(targets, arguments),
        "forgets": found.forgets,
        "loses": found.loses(targets, arguments),
        "stops": found.stops(targets, arguments),
        "rejects": found.rejects(targets, arguments),
        "only_messages": found.only_messages,
    }


_ANYBODY: Mapping[str, str] = {PRIMARY: "the primary", HOLDER: "the holder"}


def describe(
    family: str,
    targets: list[str],
    arguments: dict[str, Any],
    names: Mapping[str, str] = _ANYBODY,
) -> str:
    """Describe a fault: in its own words, if it has any, else in its family's.

    `names`: the descriptions of the current leader and of the client that holds a lock.
    """
    if words := arguments.get("words"):
        return str(words)
    found = FAMILIES.get(family)
    if found is None:
        return f"{family} of {', '.join(targets)}"
    said = found.describe(*renamed(targets, _own(arguments), names))
    if "client" in arguments:
        client = names.get(arguments["client"], arguments["client"])
        said += f", when {client} is at {arguments.get('point')}"
    return said


def check(entries: Iterable[str], at: Layout) -> list[Asked]:
    """Read the entries of --nemesis. Raises ValueError if this layout cannot have one of them."""
    return [_check(parse(entry), at) for entry in entries]


def _check(asked: Asked, at: Layout) -> Asked:
    family = FAMILIES.get(asked.family)
    if family is None:
        known = ", ".join(FAMILIES)
        raise ValueError(f"there is no fault {asked.family!r}; choose one of: {known}")
    try:
        _must_be_possible(family, at)
        _must_know(family, asked, at)
        for drawn in family.draw(Random(0), at, asked):
            family.validate(at, drawn.targets, drawn.arguments)
    except ValueError as error:
        raise ValueError(f"nemesis {asked.text}: {error}") from error
    return asked


def possible(at: Layout) -> dict[str, str]:
    """Return why a layout can have no fault of a family, by its name; "" for a family that it can
    have."""
    found: dict[str, str] = {}
    for family in FAMILIES.values():
        found[family.name] = family.ours_alone if at.foreign else ""
        if found[family.name]:
            continue
        try:
            _check(Asked(family.name, text=family.name), at)
        except ValueError as error:
            found[family.name] = str(error).removeprefix(f"nemesis {family.name}: ")
    return found


def lacking(
    entries: Iterable[str], nodes: Iterable[str], remote: Callable[[str], Remote]
) -> dict[str, list[str]]:
    """Ask nodes, each by its remote, which variants of these entries' families they cannot have.

    Return the nodes by variant, as FAMILY/VARIANT.
    """
    found: dict[str, list[str]] = {}
    asked = dict.fromkeys(nodes)
    for name in fault_spec.families(entries):
        if (lacks := FAMILIES[name].lacks) is None:
            continue
        for node in asked:
            for variant in lacks(remote(node)):
                found.setdefault(f"{name}/{variant}", []).append(node)
    return found


def _must_be_possible(family: Family, at: Layout) -> None:
    """Raise ValueError if external servers cannot have such a fault."""
    if at.foreign and family.ours_alone:
        raise ValueError(f"{family.ours_alone}, and these are not fencepost's own")


def _must_know(family: Family, asked: Asked, at: Layout) -> None:
    """Raise ValueError if the family has no such target in this layout, or no such variant."""
    targets = (*family.targets, *family.nodes(at))
    if asked.target and not targets:
        raise ValueError("it takes no target")
    if asked.target == PRIMARY and PRIMARY in targets:
        at.must_lead()
    if asked.target and asked.target not in targets:
        raise ValueError(f"the test has no {asked.target!r}; choose one of: {', '.join(targets)}")
    variants = family.variants
    if asked.variant and asked.variant not in variants and "+OFFSET" not in variants:
        known = ", ".join(variants) or "none"
        raise ValueError(f"there is no /{asked.variant}; choose one of: {known}")


def validate(family: str, targets: list[str], arguments: dict[str, Any], at: Layout) -> None:
    """Raise ValueError if this layout cannot have a hand-written fault."""
    found = FAMILIES.get(family)
    if found is None:
        raise ValueError(f"there is no family {family!r}; choose one of: {', '.join(FAMILIES)}")
    if not targets:
        raise ValueError("it has no targets")
    if strange := set(targets) - {*at.nodes, PRIMARY, HOLDER}:
        raise ValueError(f"the test has no node {min(strange)!r}")
    if PRIMARY in targets:
        at.must_lead()
    # A link may also end at a store.
    stand_ins = [name for name in (PRIMARY, HOLDER) if name == PRIMARY or name in found.targets]
    may = [*found.nodes(at), *stand_ins, *(() if found.exclusive else at.stores)]
    if wrong := [node for node in targets if found.strikes and node not in may]:
        raise ValueError(f"{wrong[0]}: {family} is for {' and '.join(found.strikes)}")
    _must_be_possible(found, at)
    if "client" in arguments:
        failpoints.validate(at, [arguments["client"]], arguments.get("point"))
    found.validate(at, targets, _own(arguments))


def _own(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fault's arguments without those that say at which client's failpoint it begins."""
    meets = ("client", "point") if "client" in arguments else ()
    return {name: value for name, value in arguments.items() if name not in meets}
