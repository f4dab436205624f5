"""Objects of one history, decided by several processes.

Only where processes can be forked: the objects are then there already and nothing but keys and
answers is sent. A limit that one of them reaches makes the whole check unknown, unless
another has found a failure.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Hashable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from fencepost.checker.lincheck.budget import Budget, Exhausted
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation

if TYPE_CHECKING:
    from fencepost.checker.lincheck.verdict import Failure

_shared: tuple[dict[Hashable, list[Operation]], list[Hashable], Model, Budget, bool] | None = None


def in_processes(
    parts: dict[Hashable, list[Operation]],
    waiting: list[Hashable],
    model: Model,
    budget: Budget,
    fast: bool,
) -> tuple[tuple[Hashable] | None, Failure | None] | None:
    """((key,), failure) of an object that fails, (None, None) if none does; None if it cannot be
    done here. Raises Exhausted."""
    global _shared
    workers = min(len(waiting), os.cpu_count() or 1)
    if workers < 2 or not sys.platform.startswith("linux") or _shared is not None:
        return None
    if multiprocessing.current_process().daemon:
        return None
    _shared = parts, waiting, model, budget, fast
    reached: str | None = None
    try:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            # The longest first, so that none is left alone at the end.
            order = sorted(range(len(waiting)), key=lambda i: -len(parts[waiting[i]]))
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
    finally:
        _shared = None
    if reached is not None:
        raise Exhausted(reached)
    return None, None


def _decide(index: int) -> tuple[int | None, Failure | None, str | None]:
    from fencepost.checker.lincheck.verdict import decide

    assert _shared is not None
    parts, waiting, model, budget, fast = _shared
    try:
        failure = decide(parts[waiting[index]], model, budget, fast)
    except Exhausted as limit:
        return None, None, limit.reason
    return (None, None, None) if failure is None else (index, failure, None)
