"""Every reader of files: a sound file for it, and a function that passes it a corrupt one.

A command answers by its exit code: valid, invalid, unknown, or 254 with a sentence about the error
in the file. A function returns, or raises its own error. All else is a defect: a traceback,
another exit code, unbounded memory or time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from unittest.mock import patch
from urllib.parse import quote

from starlette.testclient import TestClient

from fencepost.harness.campaigns import nightly
from fencepost.harness.cluster import hostsfile
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute import scripted
from fencepost.harness.spec import from_arguments
from fencepost.harness.web import site
from fencepost.hunt.search import hunt, shrink
from fencepost.nemesis import schedule
from fencepost.report.pages import bench, matrix, suite, sweep
from fencepost.report.stored import ReportError
from tests.fuzz import given, odd, resumed, sound, spoil
from tests.fuzz.door import REFUSED, Answer, Door, command, function

SHRINKING = 40
"""Maximum number of runs of one shrinking; a hunt has 3000."""


def _run(replaced: str, *words: str) -> Callable[[bytes], Answer]:
    """Run a command on the folder of a run with one corrupt file."""

    def hand(content: bytes) -> Answer:
        folder = Path("run")
        folder.mkdir()
        (folder / "history.jsonl").write_bytes(sound.history())
        (folder / "test.json").write_bytes((sound.RUN / "test.json").read_bytes())
        if replaced == "messages.json":
            (folder / "test.json").write_bytes(sound.simulated())
        if replaced == "results.json" or words[0] == "report":
            (folder / "results.json").write_bytes(sound.results())
        (folder / replaced).write_bytes(content)
        return command(*words, str(folder))

    return hand


def _stored(replaced: str, *commands: str, test: str = "test") -> Callable[[bytes], Answer]:
    """Run commands on a results folder with a run of TEST of which one file is corrupt."""

    def hand(content: bytes) -> Answer:
        folder = Path("results", test, "20260101T000000.000001Z")
        folder.mkdir(parents=True)
        (folder / "history.jsonl").write_bytes(sound.history())
        (folder / "test.json").write_bytes((sound.RUN / "test.json").read_bytes())
        (folder / "results.json").write_bytes(sound.results())
        (folder / replaced).write_bytes(content)
        answers = (
            served(folder) if words == "serve" else command(*words.split(), "--results", "results")
            for words in commands
        )
        return next(filter(None, answers), "")

    return hand


def _odd(content: bytes) -> Answer:
    """Run every command that reads the results folder on one in which a file or a name is odd."""
    random, results = Random(content), Path("results")
    place = odd.folder(results, random)
    (place / "history.jsonl").write_bytes(sound.history())
    (place / "test.json").write_bytes((sound.RUN / "test.json").read_bytes())
    (place / "results.json").write_bytes(sound.results())
    odd.spoil(place, random)
    of_the_folder = ("ls", "show test", "compare test test", "site site --docs .", "nightly report")
    of_the_run = ("analyze", "explain", "report", "rm --yes")
    calls: list[Callable[[], Answer]] = [
        *(partial(command, *words.split(), "--results", "results") for words in of_the_folder),
        # 255: a file cannot be replaced, because a folder has its name.
        *(partial(command, *words.split(), "--", str(place), also=(255,)) for words in of_the_run),
        partial(served, place),
    ]
    # All of them take half a second: more folders show more.
    return next(filter(None, (call() for call in random.sample(calls, 3))), "")


def served(folder: Path) -> Answer:
    """Return the error in how `fencepost serve` answers requests about a run."""
    at, here = quote(os.fsencode(f"{folder.parent.name}/{folder.name}")), "http://127.0.0.1:8080"
    files = list(folder.iterdir()) if folder.is_dir() else []
    asked = ["/", "/?sort=holds&verdict=valid", f"/run/{at}", f"/compare?run={at}&run={at}",
             f"/remove?run={at}"]  # fmt: skip
    if all(one.lstat().st_size < odd.HUGE for one in files):  # or sending them takes minutes
        asked += [
            f"/zip?run={at}",
            *(f"/files/{at}/{quote(os.fsencode(one.name))}" for one in files),
        ]
    form = {"Origin": here, "Content-Type": "application/x-www-form-urlencoded"}
    with (
        patch.dict(os.environ, FENCEPOST_RESULTS="results"),
        TestClient(site.site(), base_url=here, follow_redirects=False) as browser,
    ):
        codes = {path: browser.get(path).status_code for path in asked}
        codes["removed"] = browser.post("/remove", content=f"run={at}", headers=form).status_code
    bad = {path: code for path, code in codes.items() if code not in (200, 303, 400, 404)}
    return f"serve: {bad}" if bad else ""


def _hunt(content: bytes) -> Answer:
    """Hunt a user lock, in a process of its own: its code may change this one."""
    Path("lock.py").write_bytes(content)
    asked = ("hunt", "lock.py:MyLock", "--servers", "redis:1", "--budget", "0.1s",
             "--processes", "1")  # fmt: skip
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.environ["FENCEPOST_RESULTS"] = "results"
        # A short shrinking passes the same code. A whole one takes most of the time of a hunt.
        shrink._MOST = SHRINKING
        hunt._OTHERS = 0
        # 1: the lock is INVALID; 255: its code fails.
        answer = command(*asked, also=(1, 255)) or (REFUSED[-1] if REFUSED else "")
        os.write(writer, f"{answer}-".encode(errors="replace")[-4000:])
        os._exit(0)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as said:
            answer = said.read().decode()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if not answer:
        return "the process ended without an answer"
    return answer[:-1] if "Traceback" in answer or answer.startswith("exit code") else ""


def _resume(kind: str, words: str) -> Callable[[bytes], Answer]:
    """List a campaign and resume it. Nothing of it can run."""

    def hand(content: bytes) -> Answer:
        resumed.store(kind, content)
        if listed := command("ls", "--results", "results"):
            return listed
        with resumed.nothing_runs():
            # 1: a stored run is INVALID; 255: the other items crashed.
            asked = (*words.split(), "--resume", "latest", "--results", "results")
            return command(*asked, also=(1, 255))

    return hand


def _page(render: Callable[[Path], Path], name: str) -> Callable[[bytes], Answer]:
    """Make the page of a campaign, whose one file has this name."""

    def hand(content: bytes) -> Answer:
        folder = Path("campaign")
        folder.mkdir()
        (folder / name).write_bytes(content)
        return function(lambda _: render(folder), ReportError, b"")

    return hand


def _lincheck(model: str) -> Callable[[bytes], Answer]:
    def hand(content: bytes) -> Answer:
        Path("file").write_bytes(content)
        limits = ("--time-limit", "2", "--memory-limit", "300")
        return command("lincheck", "--model", model, *limits, "file")

    return hand


def _init(content: bytes) -> Answer:
    Path("file").write_text(sound.REGISTER)
    text = content.decode(errors="replace").replace("\0", "")
    return command("lincheck", "--model", "cas-register", f"--init={text}", "file")


def _read_scenario(path: Path) -> None:
    """Read it as `fencepost test --schedule` does, up to the start of servers."""
    scenario = scripted.read(path)
    if scenario is not None:
        scripted.spec(scenario.lock, scenario, {}, None, "1")


def _replay(content: bytes) -> Answer:
    folder = Path("stored")
    folder.mkdir()
    (folder / "test.json").write_bytes(content)
    return function(
        lambda path: from_arguments.replayed(str(folder), "", {}, ()), BadArguments, b""
    )  # fmt: skip


def _project(content: bytes) -> Answer:
    Path("fencepost.toml").write_bytes(content)
    return command("test", "--help")


def doors() -> list[Door]:
    """Return all readers. Call it in a folder that it may write to."""
    test, run = (sound.RUN / "test.json").read_bytes(), _run
    random = (sound.RANDOM_RUN / "test.json").read_bytes()
    history, results = sound.history(), sound.results()
    listing = (
        "ls", "show test", "compare test test", "site site --docs .", "rm --older 1000000h --yes",
        "serve",
    )  # fmt: skip
    nights = ("ls", "site site --docs .", "nightly report", "nightly trend trend.html", "serve")
    return [
        Door("analyze history.jsonl", history, spoil.lines, run("history.jsonl", "analyze")),
        Door("analyze test.json", test, spoil.json_text, run("test.json", "analyze")),
        Door("analyze run.json", sound.facts(), spoil.json_text, run("run.json", "analyze")),
        Door("analyze results.json", results, spoil.json_text, run("results.json", "analyze")),
        Door("report history.jsonl", history, spoil.lines, run("history.jsonl", "report")),
        Door("report test.json", test, spoil.json_text, run("test.json", "report")),
        Door("report results.json", results, spoil.json_text, run("results.json", "report")),
        Door(
            "report messages.json", sound.messages(), spoil.json_text,
            run("messages.json", "report"),
        ),
        Door("explain results.json", results, spoil.json_text, run("results.json", "explain")),
        Door("ls results.json", results, spoil.json_text, _stored("results.json", *listing)),
        Door("ls test.json", test, spoil.json_text, _stored("test.json", *listing)),
        Door("ls suite.json", sound.suite(), spoil.json_text, _stored("suite.json", *listing)),
        Door("ls matrix.json", sound.matrix(), spoil.json_text, _stored("matrix.json", *listing)),
        Door(
            "baseline suite.json", sound.suite(), spoil.json_text,
            _stored("suite.json", "nightly baseline test --baseline baseline.json"),
        ),
        Door("odd files and names", b"a seed", None, _odd),
        Door(
            "night.json", sound.night(), spoil.json_text,
            _stored(nightly.FILE, *nights, test="nightly"),
        ),
        Door(
            "page of a matrix", sound.matrix(), spoil.json_text,
            _page(matrix.render, "matrix.json"),
        ),
        Door("page of a sweep", sound.sweep(), spoil.json_text, _page(sweep.render, "sweep.json")),
        Door("page of a bench", sound.bench(), spoil.json_text, _page(bench.render, "bench.json")),
        Door("page of a suite", sound.suite(), spoil.json_text, _page(suite.render, "suite.json")),
        *(
            Door(
                f"resume a {kind}", resumed.sound(plan, results), spoil.lines, _resume(kind, words)
            )
            for kind, (words, plan, results) in resumed.plans().items()
        ),
        Door("fencepost.toml", sound.TOML, None, _project),
        Door("hunt lock.py", sound.LOCK, spoil.python, _hunt),
        Door("replay test.json", random, spoil.json_text, _replay),
        Door(
            "schedule", sound.schedule(), spoil.json_text,
            partial(function, lambda path: schedule.read(path, 1, sound.LAYOUT), ValueError),
        ),
        Door(
            "schedule.json", sound.scenario(), spoil.json_text,
            partial(function, _read_scenario, BadArguments),
        ),
        Door("hosts.toml", sound.HOSTS, None, partial(function, hostsfile.read, BadArguments)),
        Door("lincheck jsonl", sound.REGISTER.encode(), spoil.lines, _lincheck("cas-register")),
        Door("lincheck leases", sound.MUTEX.encode(), spoil.lines, _lincheck("lease-mutex")),
        Door("lincheck edn", sound.EDN, None, _lincheck("cas-register")),
        Door("lincheck porcupine-kv", sound.KV, None, _lincheck("kv")),
        Door("lincheck porcupine-etcd", sound.ETCD, None, _lincheck("cas-register")),
        Door("lincheck --init", b'{"a": [1, "x", null]}', spoil.json_text, _init),
        *given.doors(),
    ]  # fmt: skip
