"""Items that Dask's workers carry out, on machines that have Docker each where items need servers.

A worker starts a process for each run, in a folder of its own: signals, the results folder and what
a run may break are that process' own. It brings its cluster up, carries the run out, judges it and
removes the cluster; what it leaves in its results folder comes back in one archive. Where a worker
is killed, its process ends the run and removes what is its own all the same, and Dask gives the run
to another worker. A simulation that leaves no files needs no process of its own.
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
from dataclasses import dataclass, field, replace
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
"""How long a scheduler may take to answer, and its first worker to be there."""
_LOST = 10
"""An item that so many workers have died with is given up."""


@dataclass(frozen=True)
class Job:
    """A call of a module's function with these arguments, which can all be pickled. It returns a
    folder in the results folder and what else there is to say. `version`: of whoever asks."""

    does: Callable[..., tuple[Path, Any]]
    arguments: tuple[Any, ...]
    version: str = field(default_factory=package.version)


@dataclass(frozen=True)
class Done:
    """What came of a job: the files that it left, a zip archive of TEST/TIME/...; its folder, as
    TEST/TIME; what else it returned. `failure`: why there is none of it."""

    files: bytes = b""
    folder: str = ""
    found: Any = None
    failure: str = ""


def carried_out(item: Item) -> tuple[Path, Any]:
    """Run an item on its own cluster; return its folder and its result."""
    with Clusters(Hushed()).place([item]) as execute:
        found = execute(item)
    return getattr(found, "folder", None) or results.root(), found


class Workers:
    """Dask's workers, who each do one job at a time for each of their threads.

    `ahead`: the number of items submitted per thread, so that workers that join later get some.
    """

    # Each item has its own cluster, whichever lane runs it.
    up_s = 0.0

    def __init__(self, scheduler: str, ahead: int = 1) -> None:
        """Raises BadArguments: there is no Dask here, no such scheduler, or no worker."""
        self._client = connected(scheduler)
        self._scheduler = scheduler
        try:
            self._client.wait_for_workers(1, timeout=ANSWERS_S)
        except TimeoutError as error:
            self.close()
            raise BadArguments(
                f"the scheduler {scheduler} has no workers. `dask worker {scheduler}` starts one, "
                "on a machine with Docker and this fencepost (a hunt needs no Docker)"
            ) from error
        self.count = sum(self._client.nthreads().values())
        self.lanes = self.count * ahead

    def begin(self, job: Job) -> Callable[[], tuple[Path, Any]]:
        """Have a job done. What is returned waits for it, stores what it left in the results folder
        here, and returns its folder and what else it returned.

        That raises:
            Crashed: it could not be done.
            Gone: nor can any other.
        """
        # A run is never the same twice.
        future = self._client.submit(_do, job, pure=False)

        def done() -> tuple[Path, Any]:
            came = self._answer(future)
            if came.failure:
                raise Crashed(came.failure)
            return _kept(came), came.found

        return done

    def _answer(self, future: Any) -> Any:
        try:
            return future.result()
        except Exception as error:  # whatever Dask says of workers that die, or lack fencepost
            raise Gone(
                f"the workers of {self._scheduler} could not do the work: "
                f"{type(error).__name__}: {error}"
            ) from error

    @contextmanager
    def place(self, items: Sequence[Item]) -> Iterator[Execute]:
        yield self._execute

    def _execute(self, item: Item) -> Any:
        if not item.leaves:
            # Dask must not reuse an earlier result.
            return self._answer(self._client.submit(alone, item, pure=False))
        folder, found = self.begin(Job(carried_out, (item,)))()
        return replace(found, folder=folder) if getattr(found, "folder", None) else found

    def stop(self) -> None:
        self.close()

    def close(self) -> None:
        """What has not begun is not done any more; what has is ended by its worker."""
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
            f"the scheduler {address} does not answer within {ANSWERS_S} s. `dask scheduler` "
            "starts one, `dask worker ADDRESS` its workers"
        ) from error
    except ValueError as error:
        raise BadArguments(f"scheduler {address}: {error}") from error


def _kept(came: Done) -> Path:
    """Store what a job left, each folder whole or not at all; returns the job's own folder."""
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
    return root / came.folder


def _do(job: Job) -> Done:
    """Do a job, in a process of its own on a worker's machine."""
    from distributed import get_worker

    where = get_worker().address
    with tempfile.TemporaryDirectory(prefix="fencepost-job-") as folder:
        place = Path(folder)
        came = place / "done"
        asked = subprocess.run(
            [sys.executable, "-c", f"from {__name__} import main; main()", str(came)],
            input=pickle.dumps(job),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=place,
            env=os.environ | {"FENCEPOST_RESULTS": str(place / "results")},
        )
        if not came.exists():
            why = process.why(asked.stderr, asked.returncode)
            return Done(failure=f"a run on the worker {where} ended: {why}")
        done: Done = pickle.loads(came.read_bytes())
    return replace(done, failure=f"on the worker {where}: {done.failure}") if done.failure else done


def main() -> None:
    """Read a job from standard input, do it, and write what came of it to the file named. If the
    worker is gone by then, nobody reads that, and its folder goes."""
    interrupt_on_signals()
    worker, came = os.getppid(), Path(sys.argv[1])
    job: Job = pickle.load(sys.stdin.buffer)
    done = _done(job)
    if os.getppid() != worker:
        shutil.rmtree(came.parent, ignore_errors=True)
        return
    scratch = beside(came)
    scratch.write_bytes(pickle.dumps(done))
    scratch.replace(came)


def _done(job: Job) -> Done:
    if job.version != (ours := package.version()):
        return Done(failure=f"it has fencepost {ours}, and {job.version} is asked for")
    try:
        folder, found = job.does(*job.arguments)
    except (BadArguments, Crashed, RemoteError) as error:
        return Done(failure=str(error))
    except KeyboardInterrupt:
        return Done(failure="it was interrupted")
    except Exception:
        return Done(failure=traceback.format_exc())
    relative = folder.resolve().relative_to(results.root().resolve())
    return Done(_archive(results.root()), str(relative), found)


def _archive(root: Path) -> bytes:
    """The runs in a results folder, without the links to the newest of them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for run in sorted(root.glob("*/*Z")):
            for path in sorted(run.rglob("*")):
                if not run.is_symlink() and path.is_file():
                    archive.write(path, path.relative_to(root))
    return buffer.getvalue()
