"""Plays one long history of a lock, and judges it with every checker that applies."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.checker.checker import Run as Judged
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.verdict import Verdict
from fencepost.hunt.history.injections import Injector
from fencepost.hunt.history.long_run import LongRun
from fencepost.hunt.sim.record import to_history
from fencepost.hunt.sim.setting import Setting
from fencepost.nemesis.targets import Layout
from fencepost.workloads.client.critical_section import Settings


def injectors(
    entries: Sequence[str], setting: Setting, layout: Layout
) -> tuple[list[Injector], list[str]]:
    """Return the injectors of these faults, and why the simulated world lacks each of the
    others."""
    found, lacks = [], []
    for entry in entries:
        try:
            found.append(Injector(entry, setting, layout))
        except ValueError as error:
            lacks.append(f"{entry}: {error}")
    return found, lacks


def play(
    setting: Setting, seed: str, faults: Sequence[Injector], work: Settings
) -> dict[str, Verdict]:
    """Return the verdict of each checker on one history.

    Raises:
        LockError: the lock's own code failed.
        Unknown: the models of its servers lack a request.
    """
    run = LongRun(setting, seed, faults, work).execute()
    judged = Judged(to_history(run.rows), run.test)
    return {name: CHECKERS[name].check(judged) for name in setting.test["checkers"]}
