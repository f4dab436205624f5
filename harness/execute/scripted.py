"""A test whose faults are the steps of a scenario: a suite's, or one from a file, for example of a
hunt (harness/hunting/hunts.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost import plainfile
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.make import make
from fencepost.harness.spec.spec import Spec, layout_of
from fencepost.harness.spec.validation import validate
from fencepost.harness.userlock.user_lock import UserLock
from fencepost.nemesis import families
from fencepost.nemesis.targets import Layout
from fencepost.strictjson import decode
from fencepost.workloads.scenarios import file
from fencepost.workloads.scenarios.scenario import Heal, Inject, Scenario, plain

_SETTINGS = ("persistence", "store", "server")


def read(path: Path) -> Scenario | None:
    """Read the scenario in a file; None if it holds something else, such as the faults of a timed
    run.

    Raises:
        BadArguments: naming the invalid step and the problem.
    """
    try:
        decoded = decode(plainfile.read(path))
    except (OSError, ValueError):
        return None  # the reader of fault schedules reports the error
    if not file.is_scenario(decoded):
        return None
    try:
        return file.read(decoded)[0]
    except ValueError as error:
        raise BadArguments(f"schedule {path}: {error}") from error


def spec(
    lock: str,
    scenario: Scenario,
    options: Mapping[str, Any],
    own: UserLock | None = None,
    seed: str | None = None,
) -> Spec:
    """Return the test of a scenario on a lock. `options` come in addition to the scenario's.

    Raises:
        BadArguments: the scenario cannot run on the lock.
    """
    same = own is not None or lock == scenario.lock
    chosen = ({**scenario.options} if same else {}) | dict(options)
    for name in scenario.settings:
        if name not in _SETTINGS:
            raise BadArguments(f"schedule: there is no setting {name!r}")
    more = {"seed": from_arguments.seed(seed)}
    made = _made(lock, chosen, scenario, more, scenario.name, own)
    _must_fit(scenario, layout_of(made))
    return made


def of_suite(name: str, lock: str, scenario: Scenario, seed: int, **changed: Any) -> Spec:
    """Return the test of a suite's scenario, on the lock that it names, or else on this one.

    Raises:
        BadArguments: the scenario cannot run on the lock with these changes.
    """
    more = {"seed": seed, **changed}
    return _made(scenario.lock or lock, scenario.options, scenario, more, name)


def _made(
    lock: str,
    options: Mapping[str, Any],
    scenario: Scenario,
    more: Mapping[str, Any],
    name: str,
    own: UserLock | None = None,
) -> Spec:
    settings = {
        "guard": scenario.guard,
        "concurrency": scenario.clients,
        "ttl_ms": scenario.ttl_ms,
        "time_s": 0,
        **scenario.settings,
        **more,
    }
    return make(lock, options, settings, name=name, own=own, scenario=scenario.to_json())


def of_hunt(hunted: Spec, scenario: Scenario, seed: int) -> Spec:
    """Return the test of a scenario that a hunt of this test has found."""
    made = replace(
        hunted,
        name=scenario.name,
        options={**hunted.options, **scenario.options},
        guard=scenario.guard,
        ttl_ms=scenario.ttl_ms,
        time_s=0,
        seed=seed,
        scenario=scenario.to_json(),
    )
    return validate(made)


def _must_fit(scenario: Scenario, layout: Layout) -> None:
    """Raise BadArguments if a step refers to a node or a fault that the test does not have."""
    begun: set[str] = set()
    for number, step in enumerate(map(plain, scenario.steps), 1):
        client = getattr(step, "client", layout.clients[0])
        try:
            if client not in layout.clients:
                raise ValueError(f"the test has no client {client!r}")
            if isinstance(step, Inject):
                # Names of failpoints are not checked: they are places in the client's code.
                rest = {k: v for k, v in step.arguments.items() if k not in ("point", "words")}
                families.validate(step.family, list(step.targets), rest, layout)
                begun.add(step.name)
            if isinstance(step, Heal) and step.name not in begun:
                raise ValueError(f"no fault {step.name!r} has begun before it")
        except (TypeError, ValueError) as error:
            raise BadArguments(f"schedule, step {number}: {error}") from error
