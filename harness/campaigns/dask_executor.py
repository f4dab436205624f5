"""Runs on real servers that Dask's workers carry out, on machines that have Docker each.

A worker starts a process for each run, in a folder of its own: signals, the results folder and what
a run may break are that process' own. It brings its cluster up, carries the run out, judges it and
removes the cluster; what it leaves in its results folder comes back in one archive. Where a worker
is killed, its process ends the run and removes what is its own all the same, and Dask gives the run
to another worker.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fencepost.atomic_write import beside
from fencepost.harness import package, process
from fencepost.harness.campaigns import bench, executors
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.execute.run import run
from fencepost.harness.interrupts import interrupt_on_signals
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.results import results
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.schedule import Scheduled
from fencepost.workloads.scenarios.scenario import Scenario


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


def carried_out(
    spec: Spec, scenario: Scenario | None = None, schedule: list[Scheduled] | None = None
) -> tuple[Path, Outcome]:
    """A run on a cluster that comes up for it."""
    with cluster_for([spec], _hushed) as cluster:
        outcome = run(spec, cluster, _hushed, scenario, schedule)
    return outcome.folder, outcome


def measured(specs: Sequence[Spec], time_s: float, command: str) -> tuple[Path, Mapping[str, Any]]:
    """What these locks cost, on one cluster (bench.py)."""
    with cluster_for(specs, _hushed) as cluster:
        return bench.kept(specs, cluster, time_s, command, _hushed)


def _hushed(_: object) -> None:
    """What a run says while it goes on is in its harness.log."""


class Workers:
    """Dask's workers, who each do one job at a time for each of their threads."""

    def __init__(self, scheduler: str) -> None:
        """Raises BadArguments: there is no Dask here, no such scheduler, or no worker."""
        self._client = executors.connected(scheduler)
        self._scheduler = scheduler
        try:
            self._client.wait_for_workers(1, timeout=executors.ANSWERS_S)
        except TimeoutError as error:
            self.close()
            raise BadArguments(
                f"the scheduler {scheduler} has no workers. `dask worker {scheduler}` starts one, "
                "on a machine with Docker and this fencepost"
            ) from error
        self.count = sum(self._client.nthreads().values())

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
            try:
                came = future.result()
            except Exception as error:  # whatever Dask says of workers that die, or lack fencepost
                raise executors.Gone(
                    f"the workers of {self._scheduler} could not do a run: "
                    f"{type(error).__name__}: {error}"
                ) from error
            if came.failure:
                raise Crashed(came.failure)
            return _kept(came), came.found

        return done

    def run(
        self,
        spec: Spec,
        scenario: Scenario | None = None,
        schedule: list[Scheduled] | None = None,
    ) -> Callable[[], Outcome]:
        """Have a run carried out; what is returned waits for what came of it."""
        done = self.begin(Job(carried_out, (spec, scenario, schedule)))

        def outcome() -> Outcome:
            folder, found = done()
            assert isinstance(found, Outcome)
            return replace(found, folder=folder)

        return outcome

    def measure(
        self, specs: Sequence[Spec], time_s: float, command: str
    ) -> Callable[[], tuple[Path, Mapping[str, Any]]]:
        """Have costs measured; what is returned waits for them."""
        return self.begin(Job(measured, (specs, time_s, command)))

    def close(self) -> None:
        """What has not begun is not done any more; what has is ended by its worker."""
        self._client.close()


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
