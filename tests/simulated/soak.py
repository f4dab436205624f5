"""Compare each checker's verdict with the truth in many runs of the simulated service.

`python -m tests.simulated.soak --runs N [--seed S]`: N sound runs for each kind of service, and
a fifth of that for each defect. Prints the counts, and the first runs on which a checker and
the truth disagree; exits with 1 if any do. `--show SEED/WAY/DEFECT/NUMBER` prints one run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Any

from fencepost import processors
from fencepost.checker.checker import Run as Recorded
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History
from tests.simulated.defects import KINDS
from tests.simulated.judgement import facts, wrong
from tests.simulated.plan import WAYS
from tests.simulated.simulation import Run, simulate

CHUNK = 25
SHOWN = 5
DEFECTS = tuple(name for name in KINDS if name != "none")


@dataclass
class Tally:
    """Counts of runs: how often a defect occurred, and reached a client for certain.

    `said` and `demanded` count (checker, verdict), of all runs and of those in which that checker
    had to find the defect.
    """

    runs: int = 0
    struck: int = 0
    reached: int = 0
    said: Counter[tuple[str, str]] = field(default_factory=Counter)
    demanded: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.runs += other.runs
        self.struck += other.struck
        self.reached += other.reached
        self.said += other.said
        self.demanded += other.demanded
        self.wrong += other.wrong


def verdicts(run: Run) -> dict[str, Any]:
    """Return each checker's verdict on a run, or its exception."""
    said: dict[str, Any] = {}
    for name in run.test["checkers"]:
        try:
            said[name] = CHECKERS[name].check(Recorded(History(run.ops), run.test)).valid
        except Exception as error:  # a checker that raises is wrong, too
            said[name] = repr(error)
    return said


def tally(seed: str, way: str, defect: str, numbers: range) -> Tally:
    found = Tally()
    for number in numbers:
        name = f"{seed}/{way}/{defect}/{number}"
        run = simulate(way, defect, name)
        known, said = facts(run), verdicts(run)
        found.runs += 1
        found.struck += bool(run.struck)
        found.reached += bool(known.seen)
        found.said.update((checker, str(verdict)) for checker, verdict in said.items())
        found.demanded.update((checker, str(said[checker])) for checker in known.seen)
        found.wrong += [
            f"{name}: {one.checker} says {one.said!r}; the truth: {one.why}"
            for one in wrong(known, said)
        ]
    return found


def tasks(runs: int) -> Iterator[tuple[str, str, int]]:
    """Yield sound runs for each kind of service, and a fifth of that for each defect."""
    for way in WAYS:
        yield way, "none", runs
    for defect in DEFECTS:
        ways = KINDS[defect].ways
        for place, way in enumerate(ways):
            yield way, defect, (runs // 5 + place) // len(ways)


def told(name: str, found: Tally) -> list[str]:
    """Return the counts as lines of text."""
    lines = [f"{name}: {found.runs} runs"]
    if not name.endswith("none"):
        lines[0] += f", struck in {found.struck}, reached a client for certain in {found.reached}"
        by = found.demanded
        lines[0] += "".join(f"; {who} {said}: {n}" for (who, said), n in sorted(by.items()))
        meant = KINDS[name.split()[1]].must
        in_all = (
            f"{who} {said}: {n}" for (who, said), n in sorted(found.said.items()) if who in meant
        )
        lines.append(f"  in all {', '.join(in_all)}")
        return lines
    for checker in CHECKERS:
        came = {said: n for (who, said), n in found.said.items() if who == checker}
        if came:
            lines.append(f"  {checker}: " + ", ".join(f"{n} {s}" for s, n in sorted(came.items())))
    return lines


def show(name: str) -> None:
    """Print one run: its plan, its verdicts, the truth and its history."""
    _, way, defect, _ = name.rsplit("/", 3)
    run = simulate(way, defect, name)
    known, said = facts(run), verdicts(run)
    print(run.plan, json.dumps(run.test), said, known, sep="\n")
    for one in wrong(known, said):
        print(one)
        print(CHECKERS[one.checker].check(Recorded(History(run.ops), run.test)).evidence[:3])
    for op in run.ops:
        print(json.dumps(op.to_json()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="sound runs for each way")
    parser.add_argument("--seed", default=str(SystemRandom().randrange(10**6)))
    parser.add_argument("--only", action="append", choices=list(KINDS), help="these defects only")
    parser.add_argument("--show", help="one run, by the name that a disagreement has")
    given = parser.parse_args()
    if given.show:
        show(given.show)
        return 0
    print(f"seed {given.seed}", flush=True)
    bad = 0
    with ProcessPoolExecutor(processors.count()) as pool:
        begun: dict[str, list[Any]] = {}
        for way, defect, count in tasks(given.runs):
            if given.only and defect not in given.only:
                continue
            begun[f"{way} {defect}"] = [
                pool.submit(tally, given.seed, way, defect, range(first, min(first + CHUNK, count)))
                for first in range(0, count, CHUNK)
            ]
        for name, parts in begun.items():
            found = Tally()
            for part in parts:
                found.add(part.result())
            print("\n".join(told(name, found)), flush=True)
            print("\n".join(found.wrong[:SHOWN]), end="\n" if found.wrong else "", flush=True)
            bad += len(found.wrong)
    print(f"{bad} verdicts refuted by the truth")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
