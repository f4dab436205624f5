"""Executors for the batches of a hunt: this process, or several worker processes.

An executor receives work and returns the results in the order of the work, so the first
counterexample does not depend on the number of processes.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.pool import Pool

from fencepost import processors
from fencepost.hunt.search.batch import Batch, Searcher, Work
from fencepost.hunt.sim.setting import Setting

# A run leaves reference cycles (tasks, links); Python's own thresholds would collect ten times in
# each run.
COLLECTED = (20_000, 20, 100)

Do = Callable[[Iterable[Work]], Iterator[Batch]]
MakePool = Callable[[Setting], AbstractContextManager[Do]]


def local(processes: int | None = None) -> MakePool:
    """Return an executor with this number of processes, by default one for each core."""
    count = processes or processors.count()
    return lambda setting: _alone(setting) if count == 1 else _together(setting, count)


@contextmanager
def _alone(setting: Setting) -> Iterator[Do]:
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTED)
    try:
        searcher = Searcher(setting)
        yield lambda works: map(searcher.batch, works)
    finally:
        gc.set_threshold(*before)


@contextmanager
def _together(setting: Setting, processes: int) -> Iterator[Do]:
    # A failure without faults is raised here, and not in every process.
    Searcher(setting)
    with pool(processes, _begin, setting) as made:
        yield lambda works: made.imap(_try, works)


def pool(processes: int, begin: Callable[..., None], *arguments: object) -> Pool:
    """Start worker processes that run `begin` first. The pool ends them with SIGTERM and waits.

    Until a process has begun, a handler that it inherited from the command would receive that
    signal, and the signal would be lost. So it is blocked until then.
    """
    mask = getattr(signal, "pthread_sigmask", None)  # Windows forks nothing
    before = mask(signal.SIG_BLOCK, {signal.SIGTERM}) if mask else set()
    try:
        return multiprocessing.get_context().Pool(processes, _ended_by_signal, (begin, arguments))
    finally:
        if mask:
            mask(signal.SIG_SETMASK, before)


def _ended_by_signal(begin: Callable[..., None], arguments: tuple[object, ...]) -> None:
    # Restore the default action for SIGTERM, by which the pool ends its workers: the inherited
    # handler may clean up for the command. Only the command handles Ctrl-C.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    begin(*arguments)


def _end_with_parent() -> None:
    """End this process when the one that made it has ended: a killed command ends no worker."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_searcher: Searcher | None = None


def _begin(setting: Setting) -> None:
    global _searcher
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    _searcher = Searcher(setting)


def _try(work: Work) -> Batch:
    assert _searcher is not None
    return _searcher.batch(work)
