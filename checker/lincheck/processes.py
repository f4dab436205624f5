"""Decides the objects of one history in several processes.

Requires fork: each process inherits the objects, and only keys and answers are sent. A limit
reached in one of them makes the whole check unknown, unless another has found a failure.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Hashable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

from fencepost import processors
from fencepost.checker.lincheck.budget import Budget, Exhausted
from fencepost.checker.lincheck.decide import Failure, decide
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation


class _Work(NamedTuple):
    """The work that all processes of one check share."""

    objects: list[list[Operation]]
    model: Model
    budget: Budget
    fast: bool


_work: _Work | None = None  # in a worker process: its work


def in_processes(
    parts: dict[Hashable, list[Operation]],
    waiting: list[Hashable],
    model: Model,
    budget: Budget,
    fast: bool,
) -> tuple[tuple[Hashable] | None, Failure | None] | None:
    """Return ((key,), failure) of an object that fails, (None, None) if none does, or None if
    processes are not available here. Raises Exhausted."""
    workers = min(len(waiting), processors.count())
    if workers < 2 or not sys.platform.startswith("linux") or _work is not None:
        return None
    if multiprocessing.current_process().daemon:
        return None
    work = _Work([parts[key] for key in waiting], model, budget, fast)
    reached: str | None = None
    try:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(workers, context, _begin, (work,)) as pool:
            # The longest first, so that none runs alone at the end.
            order = sorted(range(len(waiting)), key=lambda i: -len(work.objects[i]))
            for future in as_completed([pool.submit(_decide, index) for index in order]):
                index, failure, reason = future.result()
                if index is not None:
                    pool.shutdown(wait=False, cancel_futures=True)
                    for worker in list((pool._processes or {}).values()):
                        worker.terminate()
                    return (waiting[index],), failure
                if reason is not None:
                    reached = reason
    except BrokenProcessPool:
        raise Exhausted("a process that checked some of the objects was killed") from None
    if reached is not None:
        raise Exhausted(reached)
    return None, None


def _begin(work: _Work) -> None:
    """Set up each process once; a fork inherits the work."""
    global _work
    _work = work


def _decide(index: int) -> tuple[int | None, Failure | None, str | None]:
    assert _work is not None
    try:
        failure = decide(_work.objects[index], _work.model, _work.budget, _work.fast)
    except Exhausted as limit:
        return None, None, limit.reason
    return (None, None, None) if failure is None else (index, failure, None)
