"""The simulated families by name, and the selection of faults for a hunt.

A hunt names faults as `--nemesis` does (nemesis/fault_spec.py): a family, or one of its variants or
targets, such as `packet/loss` or `pause:client`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencepost.hunt.faults import (
    cancel,
    clock,
    delay,
    failover,
    kill,
    memory,
    packet,
    partition,
    pause,
    power,
)
from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.sim.setting import Setting
from fencepost.nemesis.families import FAMILIES
from fencepost.registry import Registry

# Schedules number actions in this order: a new family comes last.
SIMULATED: Registry[Simulated] = Registry(
    "fencepost.simulated_faults",
    Simulated,
    (
        clock.SIMULATED,
        pause.SIMULATED,
        partition.SIMULATED,
        delay.SIMULATED,
        packet.SIMULATED,
        kill.SIMULATED,
        power.SIMULATED,
        failover.SIMULATED,
        memory.SIMULATED,
        cancel.SIMULATED,
    ),
)
BEFORE: Mapping[str, str] = {"drop": packet.LOSS, "duplicate": packet.DUPLICATE}
"""Names of faults in 0.1.0, and their present names."""


def table(setting: Setting) -> list[Action]:
    """Return the actions of a setting; number n of a schedule is the one at index n - 1."""
    asked, families = set(setting.faults), _families(setting)
    return [
        action
        for name, simulated in SIMULATED.items()
        if name in families
        for action in simulated.actions(setting)
        if not asked.isdisjoint(_names(name, action))
    ]


def slow(setting: Setting) -> bool:
    """Return whether one of the setting's faults can make a client work past its lease."""
    return any(SIMULATED[family].slows for family in _families(setting))


def usual(setting: Setting) -> tuple[str, ...]:
    """Return the faults of a hunt that names none: all that suit its servers."""
    return tuple(
        kind
        for one in SIMULATED.values()
        if one.usual(setting) and not one.refuses(setting)
        for kind in one.all_kinds
        if kind not in one.unusual
    )


def asked(entries: Sequence[str], setting: Setting) -> tuple[str, ...]:
    """Return the faults that entries name, in the order of the table.

    Raises:
        ValueError: the hunt cannot simulate one of them in this setting.
    """
    wanted: set[str] = set()
    for entry in entries:
        wanted.update(_read(BEFORE.get(entry, entry), setting))
    return tuple(
        name
        for one in SIMULATED.values()
        for name in (*one.all_kinds, *narrower(one, setting))
        if name in wanted
    )


def narrower(one: Simulated, setting: Setting) -> tuple[str, ...]:
    """Return the names of the variants and targets of a family that the hunt simulates."""
    if one.refuses(setting):
        return ()
    found = (name for action in one.actions(setting) for name in _names(one.name, action)[1:])
    return tuple(dict.fromkeys(found))


def _families(setting: Setting) -> set[str]:
    return {family_of(entry) for entry in setting.faults}


def family_of(entry: str) -> str:
    """Return the family of FAMILY, FAMILY/VARIANT or FAMILY:TARGET."""
    return entry.partition("/")[0].partition(":")[0]


def _read(entry: str, setting: Setting) -> Sequence[str]:
    name = family_of(entry)
    one = SIMULATED.get(name)
    if one is None:
        why = "the hunt cannot simulate it" if name in FAMILIES else f"there is no fault {name!r}"
        raise ValueError(f"fault {entry}: {why}; choose one of: {', '.join(SIMULATED)}")
    if why := one.refuses(setting):
        raise ValueError(f"fault {entry}: {why}")
    if entry == name:
        return one.usual_kinds
    parts = (*one.all_kinds, *narrower(one, setting))
    if entry not in parts:
        known = ", ".join(dict.fromkeys((name, *parts)))
        raise ValueError(f"fault {entry}: the hunt simulates {known}")
    return (entry,)


def name_of(action: Action) -> str:
    """Return the name of an action for --faults: its kind, with its target if it has one."""
    names = _names(family_of(action.kind), action)
    return next((name for name in names if ":" in name), names[0])


def _names(family: str, action: Action) -> list[str]:
    """Return the names that select an action: its kind, and its variant or target."""
    found = FAMILIES.get(family)
    names = [action.kind]
    if found is not None and action.way in found.variants:
        names.append(f"{family}/{action.way}")
    if found is not None and action.way in found.targets:
        names.append(f"{family}:{action.way}")
    return names
