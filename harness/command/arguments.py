"""What was given on the command line, as tests that can be carried out.

Whatever can not be is BadArguments, in words, before anything is started.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.run.results import find, read
from fencepost.harness.run.spec import Spec, layout_of, seconds, stored, validate
from fencepost.harness.run.watch import ANY
from fencepost.nemesis import schedule as nemesis_schedule
from fencepost.nemesis.schedule import Scheduled
from fencepost.workloads.locks.registry import LOCKS

# What may be given beside --replay, which takes all else from its run.
BESIDE = ("lock", "replay", "until", "until_violation", "option", "remote", "hosts", "leave_up")


def seed(text: str | None) -> int:
    if text is None:
        return random.SystemRandom().randrange(1_000_000)
    try:
        return int(text)
    except ValueError as error:
        raise BadArguments(f"seed {text!r} is no number: write a whole number, 7 say") from error


def ms(what: str, text: str) -> int:
    return round(seconds(what, text) * 1000)


def _pairs(given: list[str]) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in given]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise BadArguments(f"option {name!r} has no value: write -o {name or 'NAME'}=VALUE")
    return {name: value for name, _, value in pairs}


def until(checkers: str, violation: bool) -> tuple[str, ...]:
    """The checkers whose violations stop the run, of --until and --until-violation."""
    names = tuple(dict.fromkeys(name.strip() for name in checkers.split(",") if name.strip()))
    if names and violation:
        raise BadArguments(
            "--until and --until-violation exclude one another: the latter means any violation"
        )
    return (ANY,) if violation else names


def lock_options(lock: str, given: list[str]) -> dict[str, Any]:
    try:
        return LOCKS[choose("lock", lock, LOCKS)].read_options(_pairs(given))
    except ValueError as error:
        raise BadArguments(str(error)) from error


def alone(option: str, context: typer.Context, beside: tuple[str, ...]) -> None:
    """BadArguments where something was given that the option decides already."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in beside and source is not None and source.name == "COMMANDLINE":
            raise BadArguments(
                f"--{option} takes all from the run that it names: leave {name.replace('_', '-')} "
                "out"
            )


def scheduled(spec: Spec, path: Path | None) -> tuple[Spec, list[Scheduled] | None]:
    """A test with the faults of a file, if one is given."""
    if path is None:
        return spec, None
    if spec.nemesis:
        raise BadArguments("--schedule and --nemesis exclude one another: the file has the faults")
    try:
        faults = nemesis_schedule.read(path, spec.seed, layout_of(spec))
    except ValueError as error:
        raise BadArguments(f"schedule {error}") from error
    late = [fault for fault in faults if fault.at_s > spec.time_s]
    if late:
        raise BadArguments(
            f"schedule {path}: a fault at {late[0].at_s:g} s never comes in a run of "
            f"{spec.time_s:g} s; write --time {late[-1].at_s + late[-1].duration_s:g}s"
        )
    families = dict.fromkeys(fault.family for fault in faults)
    return validate(replace(spec, nemesis=tuple(families), scheduled=True)), faults


def replayed(
    run: str, lock: str, option: list[str], until: tuple[str, ...]
) -> tuple[Spec, list[Scheduled]]:
    """A stored run's test and its schedule, on another lock if one is named."""
    folder = find(run)
    try:
        described = read(folder / "test.json")
        spec = stored(described)
        if lock and lock != spec.lock:
            spec = replace(spec, name=lock, lock=lock, options=lock_options(lock, option))
        elif option:
            spec = replace(spec, options=lock_options(spec.lock, option))
        spec = validate(replace(spec, until=until))
        rows = described.get("schedule", [])
        return spec, nemesis_schedule.stored(rows, layout_of(spec), spec.seed)
    except (OSError, ValueError) as error:
        raise BadArguments(f"{folder} can not be run again: {error}") from error


def of_schedule(faults: list[Scheduled] | None) -> str:
    return "" if faults is None else f", {len(faults)} faults as scheduled"
