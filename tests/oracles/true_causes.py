"""Compare each cause that is stated as sure with the truth of a simulated run.

    python -m tests.oracles.true_causes --runs N [--seed S]

The simulation (tests/simulated) knows when each process was stopped, when each write was applied,
and the deadlines that each client received.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from random import Random, SystemRandom
from typing import Any
from unittest import mock

from fencepost import processors
from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History, Op
from tests.oracles.causes import EXPLAINED
from tests.simulated.defects import KINDS
from tests.simulated.drawing import draw
from tests.simulated.plan import WAYS
from tests.simulated.resource import Store
from tests.simulated.simulation import Run as Simulated
from tests.simulated.simulation import Simulation
from tests.simulated.truth import Held
from tests.simulated.world import MS, Process

CHUNK = 25
SHOWN = 5
_NEARLY = 0.85
"""A stop lasts for this part of the time that it explains. The checker wants nine tenths, by
receipts that lag behind the truth."""
_LAG = 6 * MS
"""A stop takes effect so long after it was ordered."""
Row = dict[str, Any]


@dataclass
class Watched:
    """When processes were stopped, by node, and when each value was written. True times in ns."""

    stops: dict[str, list[list[float]]] = field(default_factory=dict)
    applied: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def watch(self) -> Iterator[None]:
        pause, resume, kill, write = Process.pause, Process.resume, Process.kill, Store.write

        def paused(process: Process) -> None:
            mine = self.stops.setdefault(process.node, [])
            if not mine or mine[-1][1] < float("inf"):
                mine.append([process.world.now, float("inf")])
            pause(process)

        def went_on(process: Process, how: Any) -> None:
            for stop in self.stops.get(process.node, [])[-1:]:
                stop[1] = min(stop[1], process.world.now)
            how(process)

        def written(store: Store, name: str, value: str, *given: Any) -> Any:
            self.applied.setdefault(value, store._world.now)
            return write(store, name, value, *given)

        with (
            mock.patch.object(Process, "pause", paused),
            mock.patch.object(Process, "resume", lambda process: went_on(process, resume)),
            mock.patch.object(Process, "kill", lambda process: went_on(process, kill)),
            mock.patch.object(Store, "write", written),
        ):
            yield


def check(seed: str, first: int, count: int) -> tuple[Counter[str], list[str]]:
    """Count the causes in these runs that are stated as sure, and return the untrue ones."""
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    cases = cycle([(way, defect) for defect, kind in KINDS.items() for way in kind.ways or WAYS])
    for number, (way, defect) in enumerate(islice(cases, first, first + count), first):
        name = f"{seed}/{way}/{defect}/{number}"
        seen = Watched()
        with seen.watch():
            run = Simulation(draw(Random(f"{name}/plan"), way, defect), name).run()
        for checker, piece in _evidence(run):
            outcomes.update(link["sort"] for link in piece["cause"] if link["sure"])
            why = untrue(run, seen, checker, piece)
            if why:
                wrong.append(f"{name}: {checker}: {why}: {piece['what']}")
    return outcomes, wrong


def _evidence(run: Simulated) -> Iterator[tuple[str, Row]]:
    history = History(run.ops)
    for name in EXPLAINED:
        for piece in CHECKERS[name].check(Run(history, run.test)).evidence:
            if "cause" in piece:
                yield name, piece


def untrue(run: Simulated, seen: Watched, checker: str, piece: Row) -> str:
    """Return why a chain of causes is untrue where it is sure; "" if it is not."""
    sure = [link for link in piece["cause"] if link["sure"]]
    slack = _LAG + run.plan.grain
    for link in sure:
        node, at = (link.get("nodes") or [""])[0], link["time_ns"]
        match link["sort"]:
            case "lease-over":
                if not _told(run, at):
                    return "no client was told of this end of a lease"
            case "expired-grant":
                late = [held for held in _told(run, at) if held.start >= at and held.node == node]
                if not late:
                    return "no grant arrived when this lease had expired"
                if all(_stopped(seen, held, at, held.start, slack) for held in late):
                    return "its client was stopped when the lease expired"
            case "kept-by-fault":
                over = _over(sure)
                acted, value = _acted(run.ops, checker, piece, node, over)
                holders = [held for held in _told(run, over) if held.node == node]
                if not any(
                    start - slack <= over - held.error
                    and end + slack >= (over + _NEARLY * (acted - over)) - held.error
                    for held in holders
                    for start, end in seen.stops.get(node, [])
                ):
                    return "its process was not stopped then, or not for so long"
                if value and seen.applied.get(value, 0) < over - holders[0].error - slack:
                    return "the write was applied in time"
            case "kept-on":
                acted, _ = _acted(run.ops, checker, piece, node, at)
                holders = [held for held in _told(run, at) if held.node == node]
                if holders and all(
                    any(
                        start + slack < at - held.error and end - slack > acted - held.error
                        for start, end in seen.stops.get(node, [])
                    )
                    for held in holders
                ):
                    return "its process was stopped all the time"
    return ""


def _told(run: Simulated, deadline: float) -> list[Held]:
    """Return the holds whose client received this end of its lease, or asked for it."""
    return [
        held
        for held in run.truth.holds
        if any(until == deadline for _, until in held.told)
        or any(sent + op.value["ttl"] == deadline for sent, op in _extends(run.ops, held))
    ]


def _extends(ops: list[Op], held: Held) -> Iterator[tuple[int, Op]]:
    """Yield the extends of a hold, which may have made its lease shorter."""
    for op in ops:
        if op.f == "extend" and op.type == "invoke" and op.value.get("hold") == held.name:
            yield op.time, op


def _over(sure: list[Row]) -> float:
    return next(link["time_ns"] for link in sure if link["sort"] == "lease-over")


def _acted(ops: list[Op], checker: str, piece: Row, node: str, over: float) -> tuple[float, str]:
    """Return when the client acted, and the value that it wrote."""
    if checker not in ("resource", "fencing") or "holds" in piece:
        return piece["time_ns"] if "exclusion" in checker else ops[piece["ops"][0]].time, ""
    begun = ops[piece["ops"][1] if checker == "fencing" else piece["ops"][0]]
    if f"; {begun.value['value']!r}" not in piece["what"] and begun.node != node:
        writes = (op for op in ops if op.f == "write" and op.type == "invoke")
        begun = next(op for op in writes if f"; {op.value['value']!r}" in piece["what"])
    value = str(begun.value["value"])
    if begun.time > over:
        return begun.time, value
    # Accepted by its answer, or by that of the first read which shows it.
    return min(op.time for op in ops if op.type == "ok" and op.value.get("value") == value), value


def _stopped(seen: Watched, held: Held, since: float, until: float, slack: int) -> bool:
    """Return whether the process of a holder was stopped at all between two stamps."""
    return any(
        start < until - held.error - slack and end > since - held.error + slack
        for start, end in seen.stops.get(held.node, [])
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", default=str(SystemRandom().randrange(10**6)))
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.runs} runs", flush=True)
    with ProcessPoolExecutor(processors.count()) as pool:
        starts = range(0, given.runs, CHUNK)
        counts = [min(CHUNK, given.runs - start) for start in starts]
        done = list(pool.map(check, [given.seed] * len(counts), starts, counts))
    outcomes = sum((outcome for outcome, _ in done), Counter[str]())
    wrong = [one for _, found in done for one in found]
    print(", ".join(f"{count} {sort}" for sort, count in sorted(outcomes.items())))
    print("\n".join(wrong[:SHOWN]), end="\n" if wrong else "")
    print(f"{len(wrong)} causes refuted by the truth")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
