"""Who tries the batches of a hunt: this process, or several of this machine.

A crew is handed work and gives what came of it, in the order of the work: so the find is the one
that comes first, however many there are.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.pool import Pool

from fencepost.hunt.search.batch import Batch, Searcher, Work
from fencepost.hunt.sim.setting import Setting

# A run leaves circles behind (tasks, links), and Python's own thresholds look for them some ten
# times in each.
_COLLECTED = (20_000, 20, 100)

Do = Callable[[Iterable[Work]], Iterator[Batch]]
Crew = Callable[[Setting], AbstractContextManager[Do]]


def local(processes: int | None = None) -> Crew:
    """So many processes of this machine; as many as it has cores, if left out."""
    count = processes or os.cpu_count() or 1
    return lambda setting: _alone(setting) if count == 1 else _together(setting, count)


@contextmanager
def _alone(setting: Setting) -> Iterator[Do]:
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECTED)
    try:
        searcher = Searcher(setting)
        yield lambda works: map(searcher.batch, works)
    finally:
        gc.set_threshold(*before)


@contextmanager
def _together(setting: Setting, processes: int) -> Iterator[Do]:
    # What fails without any fault fails here, and not in every process over and over.
    Searcher(setting)
    with pool(processes, _begin, setting) as made:
        yield lambda works: made.imap(_try, works)


def pool(processes: int, begin: Callable[..., None], *arguments: object) -> Pool:
    """So many processes, each of which begins so. The pool ends them by SIGTERM, once, and waits.

    Before a process has begun, that signal would be for whatever the command does that was forked,
    and be lost. So it is held back until then.
    """
    mask = getattr(signal, "pthread_sigmask", None)  # Windows forks nothing
    before = mask(signal.SIG_BLOCK, {signal.SIGTERM}) if mask else set()
    try:
        return multiprocessing.get_context().Pool(processes, _ended_by_signal, (begin, arguments))
    finally:
        if mask:
            mask(signal.SIG_SETMASK, before)


def _ended_by_signal(begin: Callable[..., None], arguments: tuple[object, ...]) -> None:
    # The pool ends its workers by a signal, which the command that was forked may have meant to
    # clean up after; Ctrl-C is for the command alone.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    begin(*arguments)


_searcher: Searcher | None = None


def _begin(setting: Setting) -> None:
    global _searcher
    gc.freeze()
    gc.set_threshold(*_COLLECTED)
    _searcher = Searcher(setting)


def _try(work: Work) -> Batch:
    assert _searcher is not None
    return _searcher.batch(work)
