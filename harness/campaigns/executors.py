"""Who does the work items of a campaign: processes of this machine, or Dask's workers anywhere.
Real runs go to Dask's workers too (elsewhere.py).

No engine of our own: Dask gives a lost worker's items to others by itself, and starts, watches and
shows its workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fencepost.harness.errors import BadArguments, Crashed, choose
from fencepost.hunt.search.campaign import Item, Outcome, work
from fencepost.hunt.search.pool import pool

Engine = Callable[[Sequence[Item]], Iterator[Outcome]]
"""Does all items, and gives what came of each as it comes."""

ENGINES = ("local", "dask")
ANSWERS_S = 10
"""How long a scheduler may take to answer."""
_LOST = 10
"""An item that so many workers have died with is given up."""


class Gone(Crashed):
    """The scheduler or its workers are gone, or cannot do the work: nothing more will come."""


def engine(name: str, scheduler: str | None, processes: int | None) -> Engine:
    """Raises BadArguments where it cannot be had."""
    address = scheduler_of(name, scheduler)
    return _dask(address) if address else _local(processes or os.cpu_count() or 1)


def scheduler_of(name: str, scheduler: str | None) -> str:
    """The address of the scheduler of this engine; "" where it has none.

    Raises:
        BadArguments: there is no such engine, it lacks a scheduler, or can have none.
    """
    if choose("engine", name, ENGINES) == "local":
        if scheduler is not None:
            raise BadArguments("--scheduler is for --engine dask")
        return ""
    if not scheduler:
        raise BadArguments("--engine dask needs --scheduler ADDRESS: tcp://HOST:8786, say")
    return scheduler


def _local(processes: int) -> Engine:
    def carry_out(items: Sequence[Item]) -> Iterator[Outcome]:
        count = min(processes, len(items))
        if count <= 1:
            yield from map(work, items)
            return
        with pool(count, _begin) as made:
            yield from made.imap_unordered(work, items)

    return carry_out


def _begin() -> None:
    """A seed needs nothing before."""


def _dask(address: str) -> Engine:
    client = connected(address)

    def carry_out(items: Sequence[Item]) -> Iterator[Outcome]:
        from distributed import as_completed

        try:
            # Every item is done once, whatever was done in another campaign.
            futures = client.map(work, items, pure=False)
            for future in as_completed(futures, loop=client.loop):
                yield future.result()
        except OSError as error:
            raise Gone(f"the scheduler {address} is gone: {error}") from error
        except Exception as error:  # whatever Dask says of workers that die, or lack fencepost
            raise Gone(f"Dask could not do the work: {type(error).__name__}: {error}") from error
        finally:
            client.close()

    return carry_out


def connected(address: str) -> Any:
    """A client of Dask's scheduler (distributed.Client).

    Raises:
        BadArguments: there is no Dask here, or no such scheduler answers.
    """
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise BadArguments("--engine dask needs Dask: pip install 'fencepost[dask]'") from error
    dask.config.set({"distributed.scheduler.allowed-failures": _LOST})
    try:
        return Client(address, timeout=ANSWERS_S, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise BadArguments(
            f"the scheduler {address} does not answer within {ANSWERS_S} s. `dask scheduler` "
            "starts one, `dask worker ADDRESS` its workers"
        ) from error
    except ValueError as error:
        raise BadArguments(f"scheduler {address}: {error}") from error
