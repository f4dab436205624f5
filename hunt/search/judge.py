"""Judges simulated runs with the same checkers as real ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from fencepost.checker.checker import Run as Judged
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.verdict import Verdict
from fencepost.hunt.run import Run
from fencepost.hunt.search.prefilter import signs
from fencepost.hunt.sim.record import to_history


def violations(run: Run, goals: Iterable[str], surely: bool = False) -> dict[str, Verdict]:
    """Return the checkers among `goals` that find a violation, with their verdicts.

    A checker runs only if it suspects the run by its signs, or with `surely`.
    """
    setting = run.setting
    asked = tuple(goals)
    if not surely:
        shown = signs(
            run.rows, run.came_back, setting.bound_ns, setting.promises("fifo"),
            setting.keeps_on, setting.promises("true_refusals"),
        )  # fmt: skip
        asked = _suspicious(asked, frozenset(shown))
    if not asked:
        return {}
    judged = Judged(to_history(run.rows), run.test)
    checked = [CHECKERS[name] for name in asked]
    # A client without a timeout waits here for longer than TCP would take.
    hangs = run.network.silence > setting.bound_ns
    found = {one.name: one.check(judged) for one in checked if not (one.of_time and hangs)}
    return {name: verdict for name, verdict in found.items() if verdict.valid is False}


@lru_cache(maxsize=1024)
def _suspicious(goals: tuple[str, ...], shown: frozenset[str]) -> tuple[str, ...]:
    """Return the goals that suspect a run with these signs; cached, because most runs show none."""
    return tuple(name for name in goals if CHECKERS[name].suspect(shown))
