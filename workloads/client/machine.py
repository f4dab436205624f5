"""The machine that a client runs on: connections, time, threads, randomness."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from fencepost.workloads.client.wire import Setup
from fencepost.workloads.contract.lock import Link
from fencepost.workloads.transport.etcd_gateway import pool
from fencepost.workloads.transport.redis_link import RedisLink
from fencepost.workloads.transport.request_link import dial


class Machine(msgspec.Struct, frozen=True):
    """The part of an Env that belongs to the machine (workloads/contract/lock.py).

    `random` makes the random source of one process from its seed. A real process cannot end its
    threads while it continues, so `end_threads` does nothing there.
    """

    sleep: Callable[[float], None]
    random: Callable[[str], Random]
    connect: Callable[[str, float], Link]
    address: Callable[[str], tuple[str, int]]
    background: Callable[[Callable[[], None]], None]
    mutex: Callable[[], AbstractContextManager[Any]]
    pool: Callable[[str, int], Any]
    dial: Callable[[str, str, int, float, float], Link]
    end_threads: Callable[[], None] = lambda: None


def real(setup: Setup) -> Machine:
    """Return the machine that this program really runs on."""

    def connect(node: str, timeout_s: float) -> Link:
        return RedisLink(*setup.addresses[node], timeout_s)

    return Machine(
        sleep=time.sleep,
        random=Random,
        connect=connect,
        address=setup.addresses.__getitem__,
        background=_thread,
        mutex=threading.Lock,
        pool=pool,
        dial=dial,
    )


def _thread(work: Callable[[], None]) -> None:
    """Start a thread with the name of its task, which the nemesis looks up (the kernel's name, of
    15 letters; threading does not set it before Python 3.14)."""
    name = getattr(work, "__name__", "background").strip("_")

    def named() -> None:
        with suppress(OSError):  # not on Linux
            Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
        work()

    threading.Thread(target=named, name=name, daemon=True).start()
