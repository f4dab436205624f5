"""Plays one lock of the catalogue: in long histories, in a hunt, or on real servers.

Each play is of a user lock, FILE:Lock or FILE:Sound, and gives a `Played`. The class that has the
defect is played until the named checker refutes it; its twin for a fixed time, in which no checker
of the service may refute it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from fencepost.checker.checkers import CHECKERS
from fencepost.checker.verdict import Verdict
from fencepost.harness.campaigns.item import Item, Watcher
from fencepost.harness.campaigns.item import test as test_item
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.execute.timed import client_settings
from fencepost.harness.hunting import hunts
from fencepost.harness.hunting.hunts import Hunt
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.spec import Spec, layout_of
from fencepost.harness.userlock import python
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.hunt.faults import registry as simulated
from fencepost.hunt.faults.registry import table
from fencepost.hunt.history.play import injectors, play
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.run import Run
from fencepost.hunt.search.judge import violations
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.nemesis.fault_spec import parse
from fencepost.workloads.client.critical_section import Settings
from fencepost.workloads.contract.catalogue import LOCK, TWIN, Listed, catalogue
from fencepost.workloads.contract.defect import Defect

HISTORIES, OF_TWIN = 200, 3
"""The most histories of one seed, until one shows the defect; those of its twin."""
CLIENTS = 3
HUNT_S, TWIN_HUNT_S = 60.0, 10.0
RUN_S, TWIN_RUN_S = 60.0, 30.0


@dataclass(frozen=True)
class Played:
    """The outcome of one play. `tried`: histories or schedules; `seconds` until the violation.

    `found`: the named checker refutes the lock. On servers another one that the defect concerns
    (`also`) may do so alone, because a stopped client leaves its own part in doubt: `by`.
    `accused`: checkers of the service that refute it although they should not. `lacks`: the faults
    that the simulated world does not have. `cannot`: why it cannot be played. `folder`: of its run,
    if it has one.
    """

    found: bool = False
    tried: int = 0
    seconds: float | None = None
    accused: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    cannot: str = ""
    by: str = ""
    folder: Path | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "found": self.found, "tried": self.tried, "seconds": self.seconds,
            "accused": list(self.accused), "lacks": list(self.lacks), "cannot": self.cannot,
            "by": self.by,
        }  # fmt: skip
        return found


def accusing(verdicts: Mapping[str, Verdict], guard: str) -> list[str]:
    """Return the checkers that accuse the service.

    Without a guard the resource accepts each write, so that a late one refutes `fencing` with any
    lock: that counts only if the tokens themselves are wrong.
    """
    found = [name for name, one in verdicts.items() if one.valid is False]
    found = [name for name in found if "service" in CHECKERS[name].about]
    late = guard == "none" and all("resource" in row for row in _evidence(verdicts, "fencing"))
    return [name for name in found if not (late and name == "fencing")]


def _evidence(verdicts: Mapping[str, Verdict], name: str) -> list[dict[str, Any]]:
    return verdicts[name].evidence if name in verdicts else []


def _wrongly(listed: Listed, name: str, accused: list[str]) -> tuple[str, ...]:
    """Return the checkers that say something untrue of this class."""
    defect = listed.defect
    allowed = () if name == TWIN else (defect.checker, *defect.also)
    return tuple(dict.fromkeys(one for one in accused if one not in allowed))


def _settings(listed: Listed, seed: int) -> dict[str, Any]:
    defect = listed.defect
    guard = {} if defect.guard == "none" else {"guard": defect.guard}
    return {"ttl": f"{round(defect.ttl_s * 1000)}ms", "seed": seed, **guard}


def _shared(listed: Listed) -> dict[str, Any]:
    return {"shared": 0.5} if listed.defect.shared else {}


def _asked(listed: Listed, name: str) -> dict[str, Any]:
    """Return the options of a user lock; a LockType has them in itself."""
    defect = listed.defect
    bundle = python.find(listed.lock(name)).bundle
    own = {"servers": defect.servers, "ends_with": defect.ends_with} if bundle is None else {}
    return {**own, "promises": defect.promises}


# (a) Long histories.


def of_histories(listed: Listed, name: str, seed: int) -> Hunt:
    """Return the simulation of a class. Raise BadArguments if it cannot be simulated."""
    options = {key: str(value) for key, value in listed.defect.options.items()}
    return hunts.described(
        listed.lock(name), options, _settings(listed, seed) | _shared(listed),
        clients=listed.defect.clients or CLIENTS, faults="", **_asked(listed, name),
    )  # fmt: skip


def histories(item: Item, cluster: Cluster | None, watcher: Watcher) -> Played:
    """Play histories of one seed until one shows the defect."""
    name, lock = item.asked
    listed = catalogue()[name]
    hunt = of_histories(listed, lock, item.seed)
    layout = layout_of(replace(hunt.spec, nemesis=listed.defect.faults))
    faults, lacks = injectors(listed.defect.faults, hunt.setting, layout)
    work = msgspec.convert(client_settings(hunt.spec), Settings)
    untrue: list[str] = []
    found, number = False, 0
    while not found and number < (HISTORIES if lock == LOCK else OF_TWIN):
        number += 1
        try:
            verdicts = play(hunt.setting, f"{item.seed}/{number}", faults, work)
        except Unknown as error:
            return Played(cannot=str(error))
        except LockError as error:
            raise Crashed(f"{listed.lock(lock)}: {error}") from error
        accused = accusing(verdicts, listed.defect.guard)
        untrue += accused
        found = lock == LOCK and _refuted(listed, verdicts, accused)
    return Played(found, number, None, _wrongly(listed, lock, untrue), tuple(lacks))


def _refuted(listed: Listed, verdicts: Mapping[str, Verdict], accused: list[str]) -> bool:
    """Return whether the named checker refutes the lock."""
    checker = listed.defect.checker
    if checker in CHECKERS and "service" in CHECKERS[checker].about:
        return checker in accused
    return checker in verdicts and verdicts[checker].valid is False


# (b) Hunts.


def of_hunt(listed: Listed, name: str, seed: int) -> Hunt:
    """Return the hunt of a class, for the named checker; of a twin, for all of the service.

    Raises:
        BadArguments: it cannot be hunted.
    """
    options = {key: str(value) for key, value in listed.defect.options.items()}
    twin = name == TWIN
    made = hunts.described(
        listed.lock(name), options, _settings(listed, seed),
        clients=max(2, listed.defect.clients), budget=f"{TWIN_HUNT_S if twin else HUNT_S:g}s",
        goal=None if twin else listed.defect.checker, inherent=is_trust(listed.defect),
        **_asked(listed, name),
    )  # fmt: skip
    faults = hunted_faults(made.setting, listed.defect.faults, trusts=listed.defect.twin)
    setting = replace(made.setting, faults=faults)
    return replace(made, setting=replace(setting, slow=simulated.slow(setting)))


def is_trust(defect: Defect) -> bool:
    """Return whether the defect may be trust in the servers, so that no client can prevent it. Then
    a counterexample that is inherent to the servers (hunt/search/inherent.py) shows it."""
    families = {parse(entry).family for entry in defect.faults} & simulated.SIMULATED.keys()
    return not defect.twin and any(simulated.SIMULATED[one].betrays_store for one in families)


def hunted_faults(
    setting: Setting, exposing: tuple[str, ...], trusts: bool = True
) -> tuple[str, ...]:
    """Return the default faults of a hunt without those that break any lock on such servers, and
    the faults that expose the defect, if the hunt can inject exactly these.

    A lock on a store in memory trusts its clock and its memory. If just that is the defect, no lock
    on such servers is sound (not `trusts`), and the faults that expose it are not left out.
    """
    trusting = MODELS[setting.model].wall_leases
    left_out = [name for name, one in simulated.SIMULATED.items() if trusting and one.betrays_store]
    wanted = [one for one in simulated.usual(setting) if simulated.family_of(one) not in left_out]
    wanted += ["kill:client"] if trusting else []
    for entry in exposing:
        one = parse(entry)
        exact = f"{one.family}/{one.variant}" if one.variant else one.family
        if one.target:
            exact = "" if one.variant else f"{one.family}:{one.target}"
        if exact and not (trusts and exact == one.family and one.family in left_out):
            wanted += [exact] if _has(setting, exact) else []
    return simulated.asked(list(dict.fromkeys(wanted)), setting)


def _has(setting: Setting, entry: str) -> bool:
    try:
        simulated.asked([entry], setting)
    except ValueError:
        return False
    return True


def hunting(item: Item, cluster: Cluster | None, watcher: Watcher) -> Played:
    """Hunt one class, in this process. A counterexample whose schedule breaks the twin as well is
    none, and the hunt continues."""
    name, lock = item.asked
    listed = catalogue()[name]
    asked = of_hunt(listed, lock, item.seed)
    twin = of_hunt(listed, TWIN, item.seed).setting if lock == LOCK and listed.defect.twin else None
    tried, seconds, number = 0, 0.0, 0
    while (left_s := asked.budget_s - seconds) > 0:
        spec = replace(asked.spec, seed=item.seed + 1_000_003 * number)
        number += 1
        try:
            found, find = replace(asked, spec=spec, budget_s=left_s).carry_out(1)
        except BadArguments as error:
            return Played(cannot=str(error))
        tried, seconds = tried + found.schedules, seconds + found.seconds
        if find is None:
            break
        if lock == TWIN:
            accused = accusing(find.broken, listed.defect.guard)
            if accused:
                return Played(False, tried, round(seconds, 2), tuple(accused))
        elif twin is None or not _breaks(twin, find.schedule, listed.defect.checker):
            return Played(True, tried, round(seconds, 2))
    return Played(False, tried, round(seconds, 2))


def _breaks(setting: Setting, schedule: Schedule, checker: str) -> bool:
    try:
        run = Run(setting, schedule, table(setting)).execute()
    except LockError:
        return False
    return checker in violations(run, [checker], surely=True)


# (c) Real servers.


def of_servers(listed: Listed, name: str, seed: int) -> Spec:
    """Return the test of a class on real servers, at the defaults of `fencepost test`, with --aim.

    Raises:
        BadArguments: the test cannot be made.
    """
    defect, asked = listed.defect, _asked(listed, name)
    request = LockRequest(
        asked.get("servers", ""), asked.get("ends_with", ""), promises=asked["promises"]
    )
    lock, own = resolve(listed.lock(name), request)
    settings = _settings(listed, seed) | _shared(listed)
    settings |= {"time": f"{RUN_S if name == LOCK else TWIN_RUN_S:g}s"}
    if defect.faults:
        settings |= {"nemesis": list(defect.faults), "aim": True}
    if defect.clients:
        settings |= {"concurrency": defect.clients}
    options = {key: str(value) for key, value in defect.options.items()}
    spec = from_arguments.spec(lock, options, settings, own)
    return replace(spec, name=f"defect-{defect.name}" + ("-sound" if name == TWIN else ""))


def servers(item: Item, cluster: Cluster | None, watcher: Watcher) -> Played:
    """Run one class on real servers, and compare the verdicts."""
    name, lock = item.asked
    listed = catalogue()[name]
    # Made here: a worker on another machine has the files elsewhere.
    here = replace(item, specs=(of_servers(listed, lock, item.seed),))
    outcome = test_item(here, cluster, watcher)
    accused = accusing(outcome.verdicts, listed.defect.guard)
    refuted = [one for one in listed.defect.also if one in accused]
    if _refuted(listed, outcome.verdicts, accused):
        refuted.insert(0, listed.defect.checker)
    found = lock == LOCK and bool(refuted)
    ended = outcome.verdicts.get("run")
    if not found and ended is not None and ended.valid is not True:
        raise Crashed(f"{outcome.folder}: {ended.summary}")
    evidence = outcome.verdicts[refuted[0]].evidence if found else []
    seconds = round(min(row["time_ns"] for row in evidence) / 1e9, 1) if evidence else None
    by = refuted[0] if found and refuted[0] != listed.defect.checker else ""
    wrongly = _wrongly(listed, lock, accused)
    return Played(found, 1, seconds, wrongly, by=by, folder=outcome.folder)


PLAYS: dict[str, Callable[[Item, Cluster | None, Watcher], Played]] = {
    "history": histories,
    "hunt": hunting,
    "servers": servers,
}
