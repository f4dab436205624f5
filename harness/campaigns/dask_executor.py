"""Runs items on Dask workers; if items need servers, each worker's machine needs Docker.

A worker starts a process for each run, in its own folder. So each run has its own signals and
results folder, and a run that breaks its process does not break the worker. The process starts its
cluster, carries out the run, judges it and removes the cluster. Then it returns its results folder
as one archive. If a worker is killed, its process ends the run and cleans up, and Dask gives the
run to another worker. A simulation that leaves no files needs no process.
"""

from __future__ import annotations

import io
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.atomic_write import beside
from fencepost.harness import package, process
from fencepost.harness.campaigns.executors import Clusters, Execute, Gone, alone
from fencepost.harness.campaigns.item import Hushed, Item
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.interrupts import interrupt_on_signals
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.results import results

ANSWERS_S = 10
"""Time limit for a scheduler to answer, and for its first worker to appear."""
_SPARE_S, _TIMES = 3600, 10
"""Time limit for a run: this, and this many times its estimate."""
_LOST = 10
"""Give up an item after this many workers have died running it."""


@dataclass(frozen=True)
class Done:
    """The result of an item, and its files: a zip archive of TEST/TIME/...
    `failure`: why the item failed."""

    found: Any = None
    files: bytes = b""
    failure: str = ""


class Workers:
    """Dask workers; each runs one item at a time per thread.

    `ahead`: the number of items submitted per thread, so that workers that join later get some.
    """

    # Each item has its own cluster, whichever lane runs it.
    up_s = 0.0

    def __init__(self, scheduler: str, ahead: int = 1) -> None:
        """Raise BadArguments if Dask, the scheduler or a worker is missing."""
        self._client = connected(scheduler)
        self._scheduler = scheduler
        try:
            self._client.wait_for_workers(1, timeout=ANSWERS_S)
        except TimeoutError as error:
            self.close()
            raise BadArguments(
                f"the scheduler {scheduler} has no workers: start one with `dask worker "
                f"{scheduler}`, on a machine with Docker and this version of fencepost (a hunt "
                "needs no Docker)"
            ) from error
        self.count = sum(self._client.nthreads().values())
        self.lanes = self.count * ahead

    def begin(self, item: Item) -> Callable[[], Any]:
        """Submit an item. Return a function that waits for it, stores its files in the local
        results folder, and returns its result.

        That function raises:
            Crashed: the item failed.
            Gone: no further item can run.
        """
        # A run is never the same twice.
        future = self._client.submit(_do, item, package.version(), pure=False)

        def done() -> Any:
            came: Done = self._answer(future)
            if came.failure:
                raise Crashed(came.failure)
            return _kept(came)

        return done

    def _answer(self, future: Any) -> Any:
        try:
            return future.result()
        except Exception as error:  # any error of Dask: workers that died, or lack fencepost
            raise Gone(
                f"the workers of {self._scheduler} failed: {type(error).__name__}: {error}"
            ) from error

    @contextmanager
    def place(self, items: Sequence[Item]) -> Iterator[Execute]:
        yield self._execute

    def _execute(self, item: Item) -> Any:
        if not item.leaves:
            # Dask must not reuse an earlier result.
            return self._answer(self._client.submit(alone, item, pure=False))
        return self.begin(item)()

    def stop(self) -> None:
        self.close()

    def close(self) -> None:
        """Cancel items that wait; their workers end the running ones."""
        self._client.close()


def connected(address: str) -> Any:
    """Return a client of Dask's scheduler (distributed.Client).

    Raises:
        BadArguments: Dask is not installed, or the scheduler does not answer.
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
            f"the scheduler {address} did not answer within {ANSWERS_S} s. `dask scheduler` "
            "starts one, `dask worker ADDRESS` its workers"
        ) from error
    except ValueError as error:
        raise BadArguments(f"scheduler {address}: {error}") from error


def _kept(came: Done) -> Any:
    """Store an item's files, each folder whole or not at all; return its result."""
    root = results.root()
    with zipfile.ZipFile(io.BytesIO(came.files)) as archive:
        names = archive.namelist()
        for folder in dict.fromkeys(tuple(Path(name).parts[:2]) for name in names):
            test, stamp = folder
            results.must_name_a_folder(test)
            place = root / test / stamp
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=root, prefix=".") as scratch:
                mine = [name for name in names if Path(name).parts[:2] == folder]
                archive.extractall(scratch, mine)
                os.replace(Path(scratch) / test / stamp, place)
            results.link(root / test / "latest", Path(stamp))
    if (made := getattr(came.found, "folder", None)) is None:
        return came.found
    return replace(came.found, folder=root.joinpath(*made.parts[-2:]))


def _do(item: Item, version: str) -> Done:
    """Run an item in its own process on a worker's machine. `version`: fencepost's on the
    submitting machine."""
    from distributed import get_worker

    where = get_worker().address
    with tempfile.TemporaryDirectory(prefix="fencepost-job-") as folder:
        place = Path(folder)
        came = place / "done"
        try:
            asked = subprocess.run(
                [sys.executable, "-c", f"from {__name__} import main; main()", str(came)],
                input=pickle.dumps((item, version)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=place,
                env=os.environ | {"FENCEPOST_RESULTS": str(place / "results")},
                timeout=_SPARE_S + _TIMES * item.takes_s,
            )
        except subprocess.TimeoutExpired as error:
            return Done(
                failure=f"a run on the worker {where} was ended after {error.timeout:.0f} s: run "
                "`fencepost heal` there, then resume"
            )
        if not came.exists():
            why = process.why(asked.stderr, asked.returncode)
            return Done(failure=f"a run on the worker {where} ended: {why}")
        done: Done = pickle.loads(came.read_bytes())
    return replace(done, failure=f"on the worker {where}: {done.failure}") if done.failure else done


def main() -> None:
    """Read an item from standard input, run it, and write its result to the named file. If the
    worker no longer exists by then, remove the folder."""
    interrupt_on_signals()
    worker, came = os.getppid(), Path(sys.argv[1])
    done = _done(*pickle.load(sys.stdin.buffer))
    if os.getppid() != worker:
        shutil.rmtree(came.parent, ignore_errors=True)
        return
    scratch = beside(came)
    scratch.write_bytes(pickle.dumps(done))
    scratch.replace(came)


def _done(item: Item, version: str) -> Done:
    if version != (ours := package.version()):
        return Done(failure=f"it has fencepost {ours}, but the job needs {version}")
    try:
        with Clusters(Hushed()).place([item]) as execute:
            found = execute(item)
    except (BadArguments, Crashed, RemoteError) as error:
        return Done(failure=str(error))
    except KeyboardInterrupt:
        return Done(failure="it was interrupted")
    except Exception:  # a defect of fencepost: only this text tells the submitting machine of it
        return Done(failure=traceback.format_exc())
    return Done(found, _archive(results.root()))


def _archive(root: Path) -> bytes:
    """Return the runs in a results folder, without the links to the newest of them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for run in sorted(root.glob("*/*Z")):
            for path in sorted(run.rglob("*")):
                if not run.is_symlink() and path.is_file():
                    archive.write(path, path.relative_to(root))
    return buffer.getvalue()
