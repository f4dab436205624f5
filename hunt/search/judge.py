"""Judges simulated runs with the same checkers as real ones."""

from __future__ import annotations

from collections.abc import Iterable

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
        shown = signs(run.rows, run.came_back, setting.bound_ns, setting.promised, setting.keeps_on)
        asked = CHECKERS.derived(_Suspicions)[asked, frozenset(shown)]
    if not asked:
        return {}
    judged = Judged(to_history(run.rows), run.test)
    checked = [CHECKERS[name] for name in asked]
    # A client without a timeout waits here for longer than TCP would take.
    hangs = run.network.silence > setting.bound_ns
    found = {one.name: one.check(judged) for one in checked if not (one.of_time and hangs)}
    return {name: verdict for name, verdict in found.items() if verdict.valid is False}


class _Suspicions(dict[tuple[tuple[str, ...], frozenset[str]], tuple[str, ...]]):
    """The goals that suspect a run, by all goals and its signs. Most runs show the same few."""

    def __missing__(self, key: tuple[tuple[str, ...], frozenset[str]]) -> tuple[str, ...]:
        goals, shown = key
        found = self[key] = tuple(name for name in goals if CHECKERS[name].suspect(shown))
        return found
