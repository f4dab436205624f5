"""Dask's workers execute runs; their results arrive here, even if a worker dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import closing

import pytest

from fencepost.harness import package
from fencepost.harness.campaigns import dask_executor, executors
from fencepost.harness.campaigns.dask_executor import Workers
from fencepost.harness.campaigns.item import Item
from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.results.finder import find
from fencepost.node import processes
from tests.dasked import dasked, needs_dask
from tests.harness import jobs

pytestmark = [pytest.mark.slow, needs_dask]


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with dasked(tmp_path_factory.mktemp("dask")) as made:
        made.ready()
        yield made


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def workers(dask):
    made = Workers(dask.address)
    yield made
    made.close()


def test_a_worker_s_results_are_copied_here(workers, folder):
    begun = [workers.begin(Item("one", jobs.leaves, asked=["a", "b"][:n])) for n in (1, 2)]
    for number, done in enumerate(begun, 1):
        left = done()
        place = left.folder
        assert left.lines == number and place.parent == folder / "one"
        assert (place / "nodes" / "client-1" / "log").read_text() == "a\nb"[: 2 * number - 1]
        assert json.loads((place / "test.json").read_text())["worker"] != os.getpid()
        assert find("one") == place.resolve()
    assert len(list((folder / "one").glob("*Z"))) == 2
    assert len(list((folder / "one-besides").glob("*Z"))) == 2
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (jobs.refuses, "on the worker tcp://.*: no engine answers"),
        (jobs.breaks, "(?s)on the worker .*jobs.py.*ZeroDivisionError: a mistake of ours"),
        (jobs.dies, "a run on the worker tcp://.* ended: exit code 3"),
    ],
)
def test_an_error_of_a_run_on_a_worker_is_reported(workers, folder, does, said):
    with pytest.raises(Crashed, match=said):
        workers.begin(Item("one", does))()
    assert not folder.exists()


def test_a_worker_of_another_version_refuses_a_run(workers, folder, monkeypatch):
    monkeypatch.setattr(package, "version", lambda: "0.0")
    with pytest.raises(Crashed, match=r"it has fencepost .*, but the job needs 0.0"):
        workers.begin(Item("one", jobs.leaves))()
    assert not folder.exists()


@pytest.fixture
def waited(tmp_path, eventually):
    """Return the folder of items that wait (jobs.py). The test's end ends their processes, which
    outlive their worker."""
    made = tmp_path / "place"
    made.mkdir()
    yield made
    (made / "go").touch()
    eventually(lambda: not any(processes.lives(pid) for pid in jobs.waiting(made)))


def test_an_item_s_process_outlives_its_worker(waited, eventually):
    with dasked(waited.parent) as dask:
        dask.ready()
        with closing(Workers(dask.address)) as workers:
            workers.begin(Item("waited", jobs.waits, title=str(waited)))
            (process,) = eventually(lambda: jobs.waiting(waited))
    assert processes.lives(process)


def test_a_run_whose_worker_is_killed_is_retried_on_another(
    tmp_path, waited, eventually, monkeypatch
):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    with dasked(tmp_path) as dask:
        dask.ready()
        with closing(Workers(dask.address)) as workers:
            done = workers.begin(Item("waited", jobs.waits, title=str(waited)))
            (first,) = eventually(lambda: list(waited.glob("at-*")))
            os.kill(int(first.name.removeprefix("at-")), signal.SIGKILL)
            both = eventually(lambda: [p for p in waited.glob("at-*") if p != first])
            (waited / "go").touch()
            place = done().folder
            worker = json.loads((place / "test.json").read_text())["worker"]
            assert [f"at-{worker}"] == [path.name for path in both]
        # The run of the dead worker has completed as well.
        eventually(lambda: not list((tmp_path / "scratch").glob("fencepost-job-*")))


def test_without_a_worker_the_error_says_how_to_start_one(tmp_path, monkeypatch):
    from distributed import Client

    # The scheduler may be slow to answer; that it has no workers shows at once.
    monkeypatch.setattr(dask_executor, "ANSWERS_S", 240)
    waits = Client.wait_for_workers
    monkeypatch.setattr(Client, "wait_for_workers", lambda self, n, timeout: waits(self, n, 0.5))
    said = "has no workers: start one with `dask worker tcp://127.0.0.1:"
    with dasked(tmp_path, workers=0) as dask, pytest.raises(BadArguments, match=said):
        Workers(dask.address)


def test_a_lost_scheduler_ends_all_runs(tmp_path, waited):
    with dasked(tmp_path) as dask:
        dask.ready()
        with closing(Workers(dask.address)) as workers:
            done = workers.begin(Item("waited", jobs.waits, title=str(waited)))
            dask.close()
            with pytest.raises(executors.Gone, match=r"the workers of .* failed: "):
                done()


@pytest.mark.parametrize("command", [("suite", "redis"), ("matrix",)])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--engine", "ray"), "there is no engine 'ray'; choose one of: local, dask"),
        (("--engine", "dask"), "--engine dask needs --scheduler ADDRESS"),
        (("--scheduler", "tcp://127.0.0.1:1"), "--scheduler is for --engine dask"),
        (("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--remote", "ssh"), "leave"),
    ],
)
def test_invalid_arguments_are_refused(monkeypatch, capsys, command, options, said):
    monkeypatch.setattr(sys, "argv", ["fencepost", *command, *options])
    assert app.run() == 254
    assert said in capsys.readouterr().err


def test_a_scheduler_that_does_not_answer_is_reported(monkeypatch):
    monkeypatch.setattr(dask_executor, "ANSWERS_S", 1)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(BadArguments, match=f"the scheduler {address} did not answer"):
            Workers(address)
