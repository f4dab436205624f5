"""What has to be done now and then while a run goes on, beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_S = 60.0


@contextmanager
def now_and_then(chore: Callable[[], None], every_s: float = EVERY_S) -> Iterator[None]:
    """Do it again and again within the block, in a thread; an error ends that, and not the run."""
    over = threading.Event()

    def loop() -> None:
        while not over.wait(every_s):
            chore()

    thread = threading.Thread(target=loop, name="chores", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
