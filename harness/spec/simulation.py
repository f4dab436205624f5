"""Describes the simulation of a test, for a hunt (hunt/sim/setting.py)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.checker import leadership
from fencepost.checker.checker import Checker
from fencepost.checker.checkers import CHECKERS
from fencepost.harness.errors import BadArguments, Crashed, choose
from fencepost.harness.servers.kinds import KINDS, chosen
from fencepost.harness.spec import reference
from fencepost.harness.spec.spec import Spec, restart_s, survives
from fencepost.harness.userlock.hunt_support import installed, outside_of_reach, why_not
from fencepost.hunt.faults import registry as simulated
from fencepost.hunt.lock_error import LockError, Stuck
from fencepost.hunt.models.model import Model
from fencepost.hunt.models.registry import MODELS, stores
from fencepost.hunt.reigns import must_elect
from fencepost.hunt.run import Run
from fencepost.hunt.sim.record import all_have
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.nemesis.restart import NEVER_S
from fencepost.workloads.client import wire
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.electors.plain import CALLBACK
from fencepost.workloads.locks.user_lock import modules as own_modules

CHECKS_TOKENS = "fenced"
"""The guard of the resource where tokens are given and no guard was asked for."""
LEADERSHIP = leadership.CHECKER.name


def setting_of(
    spec: Spec, faults: str | None, goal: str | None, guarded: bool, deadlines: bool = False
) -> Setting:
    """Return the simulation's setting. `deadlines`: an elector that is a program names them.

    Raises:
        BadArguments: this lock cannot be simulated.
        Crashed: its code does not terminate.
    """
    lock = spec.lock_type
    model, version = _model(spec)
    live = lock.make is None
    library = model.client if installed(model.client) else lock.imported
    outside = _is_outside(spec, model)
    _must_be_able(spec, model, outside)
    if not guarded and spec.own is None and lock.has_token(spec.options):
        # The data are no goal then, and tokens meet a resource that checks them.
        spec = replace(spec, guard=CHECKS_TOKENS)
    goals = _goals(spec, goal, guarded)
    if spec.stored_in not in stores():
        raise BadArguments(
            f"guard {spec.guard} is kept in {spec.stored_in}, for which there is no model"
        )
    away_s = restart_s(spec, spec.ttl_ms / 1000)
    setting = Setting(
        test=_description(spec),
        lock=spec.lock,
        options=spec.options,
        servers=tuple(spec.servers),
        clients=tuple(spec.clients),
        faults=(),
        goals=goals,
        guard=spec.guard,
        store=spec.stored_in,
        ttl_ns=spec.ttl_ms * 1_000_000,
        persistence=spec.persistence,
        survives=survives(spec),
        restart_ns=None if away_s == NEVER_S else round(away_s * 1e9),
        bound_ns=round(spec.liveness_bound_s * 1e9),
        replicated=lock.replicated,
        kind=lock.kind,
        model=model.name,
        version=version,
        extends=lock.extends,
        ends_with=lock.ends_with,
        outside=outside,
        libraries=tuple(filter(None, (library, *lock.loads))),
        elector=lock.elector,
        stops=spec.stops,
        closes=spec.after_cancel == "close",
        live=live,
        **_own(spec),
    )
    setting = replace(setting, slack_ns=model.slack_ns(setting))
    calm = _undisturbed(setting) if outside and not lock.library else None
    setting = replace(setting, in_loop=calm is not None and calm.in_loop)
    if calm is not None and spec.own is not None:
        longer_ns = model.keeps_ns(calm.servers[0]) - setting.ttl_ns
        setting = replace(setting, slack_ns=max(setting.slack_ns, longer_ns))
    if lock.elector and calm is not None:
        _must_elect(spec, calm)
    deadlines = deadlines or (calm is not None and all_have(calm.rows, "deadline"))
    known = not lock.elector or (deadlines and spec.stops != CALLBACK)
    setting = replace(setting, deadlines=known)
    setting = replace(setting, faults=_faults(faults, setting))
    slow = simulated.slow(setting) or (live and bool(model.outage))
    setting = replace(setting, slow=slow)
    tokens = calm is not None and all_have(calm.rows, "token")
    if not guarded and spec.guard == "none" and tokens:
        return setting_of(replace(spec, guard=CHECKS_TOKENS), faults, goal, guarded)
    compared = None if lock.elector else reference.of(spec, _in_session(calm, model))
    if compared is None:
        return setting
    applies = compared.checkers
    # A goal that the reference gives nothing to check, as tokens that it lacks, is none of its own.
    shared = ",".join(name for name in goals if applies[name] is None) if goal else None
    other = setting_of(compared, ",".join(setting.faults), shared or None, guarded)
    # The reference runs on the user's number of servers.
    test = {**other.test, "servers": setting.test["servers"]}
    there = replace(other, servers=setting.servers, test=test, _setups={})
    return replace(setting, reference=there)


def _is_outside(spec: Spec, model: Model) -> bool:
    """Return whether code that is not fencepost's makes the lock's connections."""
    lock = spec.lock_type
    brings = lock.library or model.client or lock.dials or lock.elector
    return lock.make is not None and (bool(brings) or spec.own is not None)


def _must_be_able(spec: Spec, model: Model, outside: bool) -> None:
    """Check that clients of this lock can be simulated."""
    if spec.lock_type.make is None and not model.live:
        able = ", ".join(one.name for one in MODELS.values() if one.live)
        raise BadArguments(
            f"{spec.lock} cannot be hunted: its client is a program of its own, and only servers "
            f"of {able} are simulated for real clients. `fencepost test {spec.lock}` runs it on "
            "real servers"
        )
    if outside:
        _must_be_simulated(spec, model)
    elif why := outside_of_reach(_files(spec.lock_type)):
        raise BadArguments(
            f"{spec.lock} cannot be simulated: {why}. `fencepost test {spec.lock}` runs it on real "
            "servers"
        )


def _files(lock: LockType) -> dict[str, Path]:
    """Return the file in which one of fencepost's own locks is defined."""
    module = sys.modules[getattr(lock.make, "__module__", __name__)]
    return {Path(module.__file__).name: Path(module.__file__)} if module.__file__ else {}


def _undisturbed(setting: Setting) -> Run | None:
    """Execute a run without faults; None if it fails, which the hunt reports."""
    try:
        return Run(setting, Schedule(), ()).execute()
    except Stuck as error:
        raise Crashed(f"{setting.lock}, in the simulation: {error}") from error
    except (LockError, Unknown):
        return None


def _must_elect(spec: Spec, calm: Run) -> None:
    """Raise Crashed if no candidate led in an undisturbed run."""
    try:
        must_elect(calm.rows)
    except LockError as error:
        raise Crashed(f"{spec.lock}: {error}") from error


def _in_session(run: Run | None, model: Model) -> bool:
    """Return whether the lock of an undisturbed run is kept by its holder's session."""
    if run is None or model.in_session is None:
        return True
    granted = [row[0] for row in run.rows if row[2:4] == ("ok", "acquire")]
    return all(model.in_session(run.servers[0], at) for at in granted)


def _must_be_simulated(spec: Spec, model: Model) -> None:
    """Raise BadArguments if a lock that opens its own connections cannot have simulated ones."""
    lock = spec.lock_type
    why = ""
    if not model.sockets:
        able = ", ".join(one.name for one in MODELS.values() if one.sockets)
        why = (
            f"it opens its own connections to {lock.kind}, which hunt can only simulate for {able}"
        )
    elif found := why_not(lock.imported):
        why = found
    elif spec.own is None and model.client and not installed(model.client):
        why = f"{model.client.partition('.')[0]} is not installed here"
    elif lock.imported and not installed(lock.imported):
        why = f"{lock.distribution} is not installed here: pip install {lock.distribution}"
    elif spec.own is not None and (found := outside_of_reach(spec.own.files)):
        why = found
    if why:
        real = "" if lock.elector else ". `fencepost test` runs it on real servers"
        raise BadArguments(f"{spec.lock} cannot be simulated: {why}{real}")


def _model(spec: Spec) -> tuple[Model, str]:
    """Return the model of the lock's servers, and their version, '' for the usual one.

    Raises:
        BadArguments: there is no model of them.
    """
    asked, role = spec.server_version, spec.lock_type.kind
    if role not in KINDS:
        raise BadArguments(f"{spec.lock} cannot be simulated: fencepost does not know its servers")
    kind, version = chosen(role, asked)
    if kind.model not in MODELS:
        raise BadArguments(
            f"{spec.lock} cannot be simulated: there is no model of {kind.name}, only of "
            f"{', '.join(MODELS)}. `fencepost test {spec.lock}` runs it on real servers"
        )
    return MODELS[kind.model], version if asked else ""


def _own(spec: Spec) -> dict[str, Any]:
    """Return the facts that a hunt needs about a user lock."""
    if spec.own is None or not spec.own.python:
        return {}
    file = Path(spec.own.python.rpartition(":")[0])
    folder = spec.own.files[file.as_posix()].parents[len(file.parts) - 1]
    names = own_modules(folder, list(spec.own.files), spec.own.python)
    return {"own": wire.Own(str(folder), spec.own.python), "modules": tuple(names)}


def _description(spec: Spec) -> dict[str, Any]:
    """Return test.json of a simulated run: it has no servers that could have logs."""
    test = replace(spec, time_s=0.0).to_json() | {"nemesis": [], "simulated": True}
    for name in [name for name in test["checkers"] if CHECKERS[name].needs_logs]:
        test["checkers"].remove(name)
        test["not_checked"][name] = "simulated servers have no logs"
    return test


def _faults(asked: str | None, setting: Setting) -> tuple[str, ...]:
    """Return the faults, in the table's order: those requested, or all that apply."""
    if asked is None:
        return simulated.usual(setting)
    names = [name.strip() for name in asked.split(",") if name.strip()]
    try:
        return simulated.asked(names, setting)
    except ValueError as error:
        raise BadArguments(str(error)) from error


def goals() -> list[Checker]:
    """Return the checkers that can be a hunt's goal, in the order in which a counterexample is
    shrunk."""
    return sorted((one for one in CHECKERS.values() if one.goal), key=lambda one: one.goal_rank)


def _goals(spec: Spec, asked: str | None, guarded: bool) -> tuple[str, ...]:
    """Return the checkers whose violation is a counterexample."""
    applies = spec.checkers
    fit = [goal for goal in goals() if applies[goal.name] is None]
    if asked is None:
        # How long a candidate waits for an answer is its client's choice, not the service's. If
        # only the callback ends the work, two leaders may work, and only one of them believes.
        return tuple(
            goal.name
            for goal in fit
            if ("service" in goal.about and not (goal.of_time and spec.lock_type.elector))
            or (guarded and _is_of_data(goal))
            or (goal.name == LEADERSHIP and spec.stops == CALLBACK)
        )
    names = [name.strip() for name in asked.split(",") if name.strip()]
    known = [goal.name for goal in fit]
    for name in names:
        if why := applies.get(name):
            raise BadArguments(f"goal {name}: it has nothing to check here ({why})")
        choose("checker", name, known)
    if not names:
        raise BadArguments(f"which goal? Choose from: {', '.join(known)}")
    return tuple(name for name in known if name in names)


def _is_of_data(goal: Checker) -> bool:
    return "resource" in goal.about
