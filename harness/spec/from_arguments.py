"""Makes a test's spec from arguments of the command line or of Python.

Invalid arguments raise BadArguments before anything starts.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.results.finder import find
from fencepost.harness.results.results import read_test
from fencepost.harness.servers.external_names import Foreign
from fencepost.harness.servers.external_names import read as read_named
from fencepost.harness.servers.kinds import chosen
from fencepost.harness.spec.make import BY_WORD, lock_options, make
from fencepost.harness.spec.respec import respec
from fencepost.harness.spec.spec import Spec, layout_of
from fencepost.harness.spec.validation import validate
from fencepost.harness.userlock.user_lock import UserLock
from fencepost.nemesis import schedule as nemesis_schedule
from fencepost.nemesis.schedule import Scheduled
from fencepost.settings import SETTINGS


def spec(
    lock: str, options: Mapping[str, Any], settings: Mapping[str, Any], own: UserLock | None = None
) -> Spec:
    """Return the spec of a lock's test. `settings` have the names of the command line. `own` is the
    lock, if it is in no registry.

    A missing setting has its default; a missing seed is random.

    Raises:
        BadArguments: naming the setting or option that is wrong, and the valid ones.
    """
    for word in settings:
        choose("setting", word, BY_WORD)
    return make(lock, options, {"seed": seed(None), **settings}, own=own)


def beside(servers: str, settings: dict[str, Any]) -> Foreign | None:
    """Return the external servers, if some are named; then `--servers` is a setting.

    Raises:
        BadArguments: they are not named correctly.
    """
    compose, containers = settings.get("compose"), settings.get("containers")
    if servers and (compose or containers):
        settings["servers"] = servers
    named = SETTINGS["services"].read(servers) if compose else ()
    named = named or (SETTINGS["containers"].read(containers) if containers else ())
    return read_named(named, "", str(compose or "")) if named else None


def seed(text: str | None) -> int:
    """Return the given seed, or a random one."""
    if text is None:
        return random.SystemRandom().randrange(1_000_000)
    try:
        return int(SETTINGS["seed"].read(text))
    except ValueError as error:
        raise BadArguments(str(error)) from error


def servers(given: Iterable[str] | None) -> dict[str, str]:
    """Return the versions of servers by kind, from `--server KIND=VERSION`."""
    try:
        found: dict[str, str] = SETTINGS["server"].read(given or ())
    except ValueError as error:
        raise BadArguments(str(error)) from error
    for name, version in found.items():
        chosen(name, version)
    return found


def pairs(given: Iterable[str] | None) -> dict[str, str]:
    """Return the values of `-o NAME=VALUE`, by name."""
    split = [pair.partition("=") for pair in given or ()]
    for name, equals, value in split:
        if not (name and equals and value):
            raise BadArguments(f"option {name!r} has no value: write -o {name or 'NAME'}=VALUE")
    return {name: value for name, _, value in split}


def scheduled(spec: Spec, path: Path | None) -> tuple[Spec, list[Scheduled] | None]:
    """Return the test with the faults of a file, if one is given."""
    if path is None:
        return spec, None
    if spec.aim:
        raise BadArguments(
            "--schedule and --aim exclude one another: the file already says when faults are "
            "injected"
        )
    if spec.nemesis:
        raise BadArguments(
            "--schedule and --nemesis exclude one another: the file already has the faults"
        )
    try:
        at = layout_of(replace(spec, scheduled=True))
        faults = nemesis_schedule.read(path, spec.seed, at)
    except ValueError as error:
        raise BadArguments(f"schedule {error}") from error
    late = [fault for fault in faults if fault.at_s > spec.time_s]
    if late:
        raise BadArguments(
            f"schedule {path}: a fault at {late[0].at_s:g} s is after the end of a run of "
            f"{spec.time_s:g} s; use --time {late[-1].at_s + late[-1].duration_s:g}s"
        )
    families = dict.fromkeys(fault.family for fault in faults)
    return validate(replace(spec, nemesis=tuple(families), scheduled=True)), faults


def replayed(
    run: str,
    lock: str,
    options: Mapping[str, Any],
    until: tuple[str, ...],
    own: UserLock | None = None,
) -> tuple[Spec, list[Scheduled] | None]:
    """Return a stored run's test and its schedule, on another lock if one is named; `own` is that
    lock, if it is in no registry. A long run has no schedule: its seed gives its segments'
    faults."""
    folder = find(run)
    try:
        described = read_test(folder)
        spec = respec(described, folder)
        if lock and (own is not None or lock != spec.lock):
            chosen_options = lock_options(lock, options, own)
            spec = replace(spec, name=lock, lock=lock, options=chosen_options, own=own)
        elif options:
            given = {**spec.options, **options} if spec.own else options
            spec = replace(spec, options=lock_options(spec.lock, given, spec.own))
        spec = validate(replace(spec, until=until))
        rows = described.get("schedule")
        if rows is None or spec.aim:
            return spec, None
        return spec, nemesis_schedule.from_rows(rows, layout_of(spec), spec.seed)
    except (OSError, ValueError) as error:
        raise BadArguments(f"{folder} cannot be run again: {error}") from error
