"""A scenario as a file: `schedule.json`, which a person may read, change and replay.

    {"scenario": 1, "name": "...", "lock": "redlock", "ttl_ms": 8000, ..., "steps": [
        {"do": "inject", "name": "clock-1", "family": "clock", "targets": ["redis-1"],
         "arguments": {"offset_s": 8.8}, "at_s": 0.31, "waits": true}, ...]}

`do` names a step of scenario.py; the other keys are its fields. `at_s` and `waits` are those of
Timed; a step without them is taken as soon as the one before it has ended. A file with a list, or
with a `schedule`, is different: it has the faults of a timed run (nemesis/schedule.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pprint import pformat
from typing import Annotated, Any

import msgspec

from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    LeaseOver,
    NoteTime,
    Pass,
    Plain,
    Reach,
    Scenario,
    Step,
    SyncDue,
    Timed,
    TtlByClock,
    TtlOver,
    plain,
)

VERSION = 1
_STEPS: dict[str, type[Plain]] = {
    "do": Do,
    "begin": Begin,
    "reach": Reach,
    "finish": Finish,
    "inject": Inject,
    "heal": Heal,
    "lease-over": LeaseOver,
    "ttl-over": TtlOver,
    "note-time": NoteTime,
    "ttl-by-clock": TtlByClock,
    "sync-due": SyncDue,
    "pass": Pass,
}
_NAMES = {step: name for name, step in _STEPS.items()}
_OPS = ("acquire", "extend", "release", "read", "write")
_EXPECTED = ("ok", "fail", "info", "any", "failing")
_LONGEST_S = 3600.0
_MOST_STEPS = 5000

Name = Annotated[str, msgspec.Meta(max_length=200)]
Words = Annotated[str, msgspec.Meta(max_length=100_000)]


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of the file. `notes`, `cannot`: differences from the run that it comes from."""

    scenario: int
    name: Name
    lock: Name
    guard: Name
    ttl_ms: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)]
    clients: Annotated[int, msgspec.Meta(ge=1, le=100)]
    options: dict[str, bool | int | float | str] = {}
    settings: dict[str, str] = {}
    source: Words = ""
    what: Words = ""
    expected: dict[str, bool] = {}
    notes: list[Words] = []
    cannot: list[Words] = []
    steps: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=_MOST_STEPS)]


def to_json(scenario: Scenario, notes: tuple[str, ...], cannot: tuple[str, ...]) -> dict[str, Any]:
    return {
        "scenario": VERSION,
        "name": scenario.name,
        "lock": scenario.lock,
        "options": dict(scenario.options),
        "guard": scenario.guard,
        "ttl_ms": scenario.ttl_ms,
        "clients": scenario.clients,
        "settings": dict(scenario.settings),
        "source": scenario.source,
        "what": scenario.what,
        "expected": dict(scenario.expected),
        "notes": list(notes),
        "cannot": list(cannot),
        "steps": [_row(step) for step in scenario.steps],
    }


def to_text(scenario: Scenario, notes: tuple[str, ...], cannot: tuple[str, ...]) -> str:
    """Return the text of the file, a line for each step."""
    found = to_json(scenario, notes, cannot)
    steps = ",\n".join(f"    {json.dumps(row)}" for row in found.pop("steps"))
    head = json.dumps(found, indent=2).removesuffix("\n}")
    return f'{head},\n  "steps": [\n{steps}\n  ]\n}}\n'


def python(scenario: Scenario) -> str:
    """Return the same scenario as Python code, in the words of scenario.py."""
    names = sorted({type(plain(step)).__name__ for step in scenario.steps} | {"Scenario", "Timed"})
    imports = "".join(f"    {name},\n" for name in names)
    story = scenario.what.replace("\\", "").replace('"""', "'''")
    settings = {
        field.name: getattr(scenario, field.name)
        for field in fields(scenario)
        if field.name not in ("steps", "what")
    }
    rest = "".join(f"    {name}={pformat(value)},\n" for name, value in settings.items())
    steps = "".join(f"        # {step.describe()}\n        {step!r},\n" for step in scenario.steps)
    return (
        f'"""{story}"""\n\n'
        f"from fencepost.workloads.scenarios.scenario import (\n{imports})\n\n"
        f"SCENARIO = Scenario(\n{rest}    what=__doc__,\n    steps=(\n{steps}    ),\n)\n"
    )


def _row(step: Step) -> dict[str, Any]:
    inner = plain(step)
    defaults = {f.name: f.default for f in fields(inner)}
    found = {k: v for k, v in asdict(inner).items() if v != defaults[k]}
    timed = {}
    if isinstance(step, Timed):
        timed = {"at_s": step.at_s} | ({"waits": True} if step.waits else {})
        timed |= {"lasts_s": step.lasts_s} if step.lasts_s else {}
    return {"do": _NAMES[type(inner)], **found, **timed}


def is_scenario(decoded: object) -> bool:
    """Return whether a decoded file declares itself a scenario."""
    return isinstance(decoded, Mapping) and "scenario" in decoded and "steps" in decoded


def read(decoded: object) -> tuple[Scenario, File]:
    """Return the scenario of a decoded file.

    Raises:
        ValueError: the text names the field or the step, and the problem.
    """
    try:
        found = msgspec.convert(decoded, File)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    if found.scenario != VERSION:
        raise ValueError(
            f"its scenario is version {found.scenario}, but this version of fencepost reads "
            f"{VERSION}"
        )
    steps = []
    for number, row in enumerate(found.steps, 1):
        try:
            steps.append(_step(row))
        except (TypeError, ValueError) as error:
            raise ValueError(f"step {number}: {error}") from error
    scenario = Scenario(
        name=found.name, claims=(), source=found.source, what=found.what, guard=found.guard,
        steps=tuple(steps), expected=found.expected, options=found.options, clients=found.clients,
        ttl_ms=found.ttl_ms, lock=found.lock, settings=found.settings,
    )  # fmt: skip
    return scenario, found


def _step(row: Mapping[str, Any]) -> Step:
    rest = dict(row)
    name = rest.pop("do", None)
    if not isinstance(name, str) or name not in _STEPS:
        raise ValueError(f"do {name!r}: choose one of: {', '.join(_STEPS)}")
    at_s, waits = rest.pop("at_s", None), rest.pop("waits", False)
    lasts_s = rest.pop("lasts_s", 0.0)
    type = _STEPS[name]
    known = [field.name for field in fields(type)]
    if strange := sorted(set(rest) - set(known)):
        raise ValueError(
            f"{name} has no field {strange[0]!r}; it has: {', '.join(known) or 'nothing'}"
        )
    try:
        step = msgspec.convert(rest, type)
        if at_s is not None:
            at_s, waits = msgspec.convert(at_s, float), msgspec.convert(waits, bool)
            lasts_s = msgspec.convert(lasts_s, float)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    _must_make_sense(step)
    if at_s is None:
        return step
    for name, seconds in (("at_s", at_s), ("lasts_s", lasts_s)):
        if not 0 <= seconds <= _LONGEST_S:
            raise ValueError(f"{name} {seconds} is out of range (0 to {_LONGEST_S:g})")
    return Timed(step, at_s, waits, lasts_s)


def _must_make_sense(step: Plain) -> None:
    f, expect = getattr(step, "f", "acquire"), getattr(step, "expect", "ok")
    if f not in _OPS:
        raise ValueError(f"f {f!r}: choose one of: {', '.join(_OPS)}")
    if expect not in _EXPECTED:
        raise ValueError(f"expect {expect!r}: choose one of: {', '.join(_EXPECTED)}")
    if isinstance(step, Pass) and not 0 <= step.seconds <= _LONGEST_S:
        raise ValueError(f"seconds {step.seconds} is out of range (0 to {_LONGEST_S:g})")
