"""Compare lincheck with brute force on random histories.

    python -m tests.checker.lincheck.lincheck_soak --count N [--seed S]

For every model, compare its verdict and its counterexample (counterexamples.py). For the locks,
also compare the verdict with an oracle that shares no code with the models (lock_oracle.py), with
clients that continue after an op of unknown outcome. A history depends on "seed/subject/number"
alone, so a number reproduces it (`--from`). Print the errors; exit with 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from random import Random, SystemRandom
from typing import Any

from fencepost import processors
from fencepost.checker.lincheck import Online, check, named
from tests.checker.lincheck.counterexamples import defects
from tests.checker.lincheck.lincheck_histories import SUBJECTS, history, leases
from tests.checker.lincheck.lincheck_oracle import linearizable
from tests.checker.lincheck.lock_oracle import NAMES as LOCKS
from tests.checker.lincheck.lock_oracle import accepts

CHUNK = 500
SHOWN = 2
Found = tuple[list[dict[str, Any]], bool, list[str]]  # events, the right verdict, the error


def counterexample(name: str, random: Random) -> Found:
    """Draw one history of this model, with its verdict and the counterexample where it is false."""
    failed_release = random.choice(["nothing", "ended"])
    events = history(
        random,
        SUBJECTS[name],
        random.randrange(2, 8),
        processes=random.randrange(2, 5),
        spoil=0.8,
        failed_release=failed_release,
        reuse=random.choice([0.0, 0.5]),
        holds=name == "lease-mutex" and random.random() < 0.5,
    )
    model = SUBJECTS[name].model(failed_release)
    verdict = check(events, model, fast=random.random() < 0.5)
    expected = linearizable(events, model)
    if verdict.valid is not expected:
        return events, expected, [f"the verdict is {verdict.valid}"]
    return events, expected, [] if expected else list(dict.fromkeys(defects(events, verdict)))


def lock(name: str, random: Random) -> Found:
    """Draw one history of this lock with clients that continue after an info, and judge it."""
    failed_release = random.choice(["nothing", "ended"])
    subject = replace(SUBJECTS[name], init=3) if name == "semaphore" else SUBJECTS[name]
    ops, processes = random.randrange(2, 8), random.randrange(1, 4)
    if name == "lease-mutex" and random.random() < 0.8:
        events = leases(random, ops, processes)
    else:
        events = history(
            random, subject, ops, processes, 0.35, 0.9, failed_release=failed_release, reuse=0.9
        )
    expected = accepts(name, events, failed_release)
    model = named(name, subject.init, failed_release)
    wrong = []
    for fast in (True, False):
        said = check(events, model, fast=fast).valid
        if said is not expected:
            wrong.append(f"the verdict is {said} (fast={fast})")
    online = Online(model)
    for event in events:
        online.feed(event)
    if online.valid is not expected and (name, online.valid) != ("lease-mutex", "unknown"):
        wrong.append(f"the online verdict is {online.valid}")
    return events, expected, wrong


SOAKED: dict[str, Callable[[str, Random], Found]] = {
    **{f"counterexamples of {name}": counterexample for name in SUBJECTS},
    **{f"verdicts on {name}": lock for name in LOCKS},
}


def soak(subject: str, seed: str, first: int, count: int) -> tuple[Counter[str], list[str]]:
    """Count the true and false histories and those with errors; return the first errors."""
    tally: Counter[str] = Counter()
    shown = []
    for number in range(first, first + count):
        place = f"{seed}/{subject}/{number}"
        events, expected, wrong = SOAKED[subject](subject.split()[-1], Random(place))
        tally[str(expected).lower()] += 1
        tally["wrong"] += bool(wrong)
        tally.update(wrong)
        if wrong and len(shown) < SHOWN:
            shown.append("\n  ".join([f"{place}: {'; '.join(wrong)}", *map(str, events)]))
    return tally, shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="histories a subject")
    parser.add_argument("--seed", default=str(SystemRandom().randrange(10**6)))
    parser.add_argument("--only", action="append", choices=list(SOAKED), metavar="SUBJECT")
    parser.add_argument("--from", dest="first", type=int, default=0)
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.count} histories a subject", flush=True)
    bad = 0
    with ProcessPoolExecutor(processors.count()) as pool:
        end = given.first + given.count
        tasks = {
            subject: [
                pool.submit(soak, subject, given.seed, start, min(CHUNK, end - start))
                for start in range(given.first, end, CHUNK)
            ]
            for subject in given.only or SOAKED
        }
        for subject, parts in tasks.items():
            done = [part.result() for part in parts]
            tally = sum((part for part, _ in done), Counter[str]())
            rest = {what: n for what, n in tally.items() if what not in ("true", "false", "wrong")}
            print(
                f"{subject:<36}{tally['true']:>9} true{tally['false']:>8} false"
                f"{tally['wrong']:>6} wrong {rest or ''}",
                flush=True,
            )
            for text in [text for _, shown in done for text in shown][:SHOWN]:
                print(text)
            bad += tally["wrong"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
