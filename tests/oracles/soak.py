"""Compare the checkers with their oracles.

    python -m tests.oracles.soak --count N [--seed S] [--only NAME]

Print, for each checker, the number of histories, the counts of verdicts, and the first histories
on which checker and oracle differ. Exit with 1 if any did. A history depends on
"seed/checker/number" alone, so that a number reproduces it (`--from`).
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from random import Random, SystemRandom
from typing import Any

from fencepost import processors
from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History, Op
from fencepost.checker.verdict import Verdict

Draw = Callable[[Random], tuple[list[Op], dict[str, Any]]]
Oracle = Callable[[list[Op], dict[str, Any]], set[Any]]

# Checker -> module, its draw, its verdict.
ORACLES = {
    "lease_exclusion": ("tests.oracles.exclusion", "draw", "lease"),
    "mutual_exclusion": ("tests.oracles.exclusion", "draw", "mutual"),
    "linearizable": ("tests.oracles.linearizable", "draw", "verdict"),
    "fencing": ("tests.oracles.fencing", "draw", "verdict"),
    "ownership": ("tests.oracles.ownership", "draw", "verdict"),
    "liveness": ("tests.oracles.liveness", "draw", "verdict"),
    "store": ("tests.oracles.store", "draw", "verdict"),
    "resource": ("tests.oracles.resource", "draw", "verdict"),
}
OWN = {"causes": "tests.oracles.causes"}
"""Oracles of something else than a verdict, with their own `check(seed, first, count)`."""
CHUNK = 500
SHOWN = 3


def loaded(name: str) -> tuple[Draw, Oracle]:
    module, draw, verdict = ORACLES[name]
    found = import_module(module)
    return getattr(found, draw), getattr(found, verdict)


def check(name: str, seed: str, first: int, count: int) -> tuple[Counter[str], list[str]]:
    """Count the verdicts of these histories, and return those that the oracle refuses."""
    if name in OWN:
        counted: tuple[Counter[str], list[str]] = import_module(OWN[name]).check(seed, first, count)
        return counted
    draw, verdict = loaded(name)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(first, first + count):
        ops, test = draw(Random(f"{seed}/{name}/{number}"))
        allowed = verdict(ops, test)
        try:
            found = CHECKERS[name].check(Run(History(ops), test))
            said: Any = _misshapen(found) or found.valid
        except Exception as error:  # a checker that raises is wrong, too
            said = repr(error)
        outcomes[str(said)] += 1
        if said not in allowed:
            wrong.append(_shown(name, seed, number, said, allowed, ops, test))
    return outcomes, wrong


def _misshapen(found: Verdict) -> str:
    """Return the reason why a verdict cannot be shown to a person; "" if there is none."""
    row = json.loads(json.dumps(found.to_json()))
    if not isinstance(found.summary, str) or not found.summary.endswith("."):
        return f"no sentence: {found.summary!r}"
    if found.valid is False and not found.evidence:
        return "false without evidence"
    for piece in row["evidence"]:
        what = piece.get("what")
        if not isinstance(what, str) or not what.endswith(".") or "XX" in what:
            return f"evidence without a sentence: {piece!r}"
        if not isinstance(piece.get("time_ns"), int | float):
            return f"evidence without a time: {piece!r}"
    untested = row.get("untested", [])
    if any(phrase not in found.summary for phrase in untested) and found.valid is not False:
        return f"what was not tested is not in the summary: {untested!r}"
    return ""


def _shown(
    name: str, seed: str, number: int, said: Any, allowed: Any, ops: list[Op], test: dict[str, Any]
) -> str:
    lines = [
        f"{name}: {said!r}, and the oracle allows {allowed} (--seed {seed} --from {number})",
        json.dumps(test),
        *(json.dumps(op.to_json()) for op in ops),
    ]
    return "\n".join(lines)


def _chunks(first: int, count: int) -> Iterator[tuple[int, int]]:
    for start in range(first, first + count, CHUNK):
        yield start, min(CHUNK, first + count - start)


def _begin() -> None:
    """Collect little: histories leave few cycles, and each collection visits all modules."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="histories a checker")
    parser.add_argument("--seed", default=str(SystemRandom().randrange(10**6)))
    parser.add_argument("--only", action="append", choices=[*ORACLES, *OWN])
    parser.add_argument("--from", dest="first", type=int, default=0)
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.count} histories a checker", flush=True)
    bad = 0
    with ProcessPoolExecutor(processors.count(), initializer=_begin) as pool:
        tasks = {
            name: [
                pool.submit(check, name, given.seed, *chunk)
                for chunk in _chunks(given.first, given.count)
            ]
            for name in given.only or [*ORACLES, *OWN]
        }
        for name, parts in tasks.items():
            done = [part.result() for part in parts]
            outcomes = sum((outcome for outcome, _ in done), Counter[str]())
            wrong = [one for _, found in done for one in found]
            came = ", ".join(f"{outcomes[said]} {said}" for said in sorted(outcomes))
            print(f"{name}: {came}; {len(wrong)} mismatches", flush=True)
            print("\n\n".join(wrong[:SHOWN]), end="\n\n" if wrong else "")
            bad += len(wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
