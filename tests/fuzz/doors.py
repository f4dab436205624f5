"""Every reader of files: a sound file for it, and a function that passes it a corrupt one.

A command answers by its exit code: valid, invalid, unknown, or 254 with a sentence about the error
in the file. A function returns, or raises its own error. All else is a defect: a traceback,
another exit code, unbounded memory or time.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import msgspec

from fencepost.harness import __main__ as command_line
from fencepost.harness.campaigns import nightly, outcomes
from fencepost.harness.cluster import hostsfile
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute import scripted
from fencepost.harness.judge import judge
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.spec import from_arguments
from fencepost.nemesis import schedule
from fencepost.nemesis.targets import Layout
from fencepost.report.pages import bench, matrix, suite, sweep
from fencepost.report.stored import ReportError
from fencepost.workloads.scenarios import file
from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    Pass,
    Reach,
    Scenario,
    Timed,
)
from tests.fuzz import odd, spoil
from tests.report import matrices
from tests.report.pages import test_sweep as sweeps

RECORDED = Path(__file__).parents[1] / "recorded"
RUN = RECORDED / "redlock-clock-jump"
FINE = (0, 2)
# The exit code 1 says INVALID, or of `compare` that the runs differ; no other command may use it.
JUDGES = ("analyze", "explain", "compare", "lincheck")
BAD = 254

Answer = str
"""The error in how a door answered; "" if there is none."""
Shape = Callable[[str, Random], str]


@dataclass(frozen=True)
class Door:
    """One reader.

    `sound` is a file that it accepts; `shape` corrupts its text as JSON, if it is JSON; `hand`
    passes it a corrupt one, in an empty current folder.
    """

    name: str
    sound: bytes
    shape: Shape | None
    hand: Callable[[bytes], Answer]


def command(*words: str, also: tuple[int, ...] = ()) -> Answer:
    """Return the error in how `fencepost WORDS` ends. `also`: further exit codes to accept."""
    out, err = io.StringIO(), io.StringIO()
    argv, sys.argv = sys.argv, ["fencepost", *words]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command_line.main()
    except SystemExit as error:
        code = error.code
    finally:
        sys.argv = argv
    said = err.getvalue()
    fine = (*FINE, 1) if words[0] in JUDGES else FINE
    if code not in (*fine, BAD, *also) or "Traceback" in said:
        return f"exit code {code}: {said[-2000:]}"
    if code == BAD and not said.strip():
        return "bad input, and no word of why"
    return ""


def function(read: Callable[[Path], object], error: type[Exception], content: bytes) -> Answer:
    path = Path("file")
    path.write_bytes(content)
    try:
        read(path)
    except error as told:
        return "" if str(told).strip() else "an error without a word"
    return ""


def _run(replaced: str, *words: str) -> Callable[[bytes], Answer]:
    """Run a command on the folder of a run with one corrupt file."""

    def hand(content: bytes) -> Answer:
        folder = Path("run")
        folder.mkdir()
        (folder / "history.jsonl").write_bytes(_history())
        (folder / "test.json").write_bytes((RUN / "test.json").read_bytes())
        if replaced == "results.json" or words[0] == "report":
            (folder / "results.json").write_bytes(_results())
        (folder / replaced).write_bytes(content)
        return command(*words, str(folder))

    return hand


def _stored(replaced: str, *commands: str) -> Callable[[bytes], Answer]:
    """Run commands on a results folder with a run of which one file is corrupt."""

    def hand(content: bytes) -> Answer:
        folder = Path("results", "test", "20260101T000000.000001Z")
        folder.mkdir(parents=True)
        (folder / "history.jsonl").write_bytes(b"")
        (folder / "test.json").write_bytes((RUN / "test.json").read_bytes())
        (folder / replaced).write_bytes(content)
        answers = [command(*words.split(), "--results", "results") for words in commands]
        return next(filter(None, answers), "")

    return hand


def _suite() -> bytes:
    """Return a suite.json with a scenario, a rate and a cost."""
    row = {
        "test": "a", "scenario": "a", "lock": "redis", "guard": "none", "what": "w", "why": "",
        "expected": {"resource": True}, "observed": {"resource": True}, "as_expected": True,
        "run": "../../test/20260101T000000.000001Z", "claim": "c", "source": "s",
    }  # fmt: skip
    shares = {"resource": {"count": 1, "of": 2, "low": 0.1, "high": 0.9}}
    rate = row | {"test": "b", "rate": {"runs": [{"run": row["run"]}], "shares": shares}}
    return json.dumps([row, rate]).encode()


def _matrix() -> bytes:
    return json.dumps(matrices.stored(matrices.cell(matrices.run()))).encode()


def _odd(content: bytes) -> Answer:
    """Run every command that reads the results folder on one in which a file or a name is odd."""
    random, results = Random(content), Path("results")
    name = odd.folder(results, random)
    place = results / name
    (place / "history.jsonl").write_bytes(_history())
    (place / "test.json").write_bytes((RUN / "test.json").read_bytes())
    (place / "results.json").write_bytes(_results())
    odd.spoil(place, random)
    of_the_folder = ("ls", "show test", "compare test test", "site site --docs .", "nightly report")
    of_the_run = ("analyze", "explain", "report", "rm --yes")
    answers = [command(*words.split(), "--results", "results") for words in of_the_folder]
    answers += [
        # 255: a file cannot be replaced, because a folder has its name.
        command(*words.split(), "--", str(place), also=(255,))
        for words in of_the_run
    ]
    return next(filter(None, answers), "")


def _sweep() -> bytes:
    return json.dumps(sweeps.stored(sweeps.RUNS)).encode()


def _bench() -> bytes:
    """Return a bench.json with one lock."""
    figures = {"pair_p50": 1.0, "acquire_p50": 1.0, "acquire_p99": 2.0, "rate": 100.0}
    phases = dict.fromkeys(("alone", "contended", "apart"), figures)
    lock = {"lock": "redis", "phases": phases, "trips": {"acquire": 1, "release": 1}}
    stored = {"schema": 1, "baseline": "redis", "versions": {"redis": "7"}, "locks": [lock]}
    return json.dumps(stored | {"command": "fencepost bench"}).encode()


def _night() -> bytes:
    """Return a night.json with an entry of a matrix."""
    rate = {"count": 1, "of": 10, "per_1000": 100.0, "low": 0.1, "high": 0.4}
    entry = outcomes.Entry(
        "matrix/redis/none/none", "redis", marks=["kept"], holds=10, rates={"service": rate},
        acquire_ms={"p50": 1.0}, regrant_s=[1.0], duration_s=1.0, state="changed", run="a/b",
        known={"marks": ["kept"], "run": "a/b", "night": "x", "seed": 1},
    )  # fmt: skip
    night = nightly.NightlyRun(
        nightly.SCHEMA, 7, 600.0, "2026-01-01T00:00:00Z", over=True, entries=[entry],
        parts=[nightly.Stage("suites", "fencepost suite", 60.0, folders=["a/b"])],
        figures=outcomes.figures([entry]),
    )  # fmt: skip
    return msgspec.json.encode(night)


def _page(render: Callable[[Path], Path], name: str) -> Callable[[bytes], Answer]:
    """Make the page of a campaign, whose one file has this name."""

    def hand(content: bytes) -> Answer:
        folder = Path("campaign")
        folder.mkdir()
        (folder / name).write_bytes(content)
        return function(lambda _: render(folder), ReportError, b"")

    return hand


def _history() -> bytes:
    return gzip.decompress((RUN / "history.jsonl.gz").read_bytes())


_KNOWN: dict[str, bytes] = {}


def _results() -> bytes:
    """Return the results of the run, as it is judged."""
    if not _KNOWN:
        folder = Path("judged")
        folder.mkdir()
        (folder / "history.jsonl").write_bytes(_history())
        (folder / "test.json").write_bytes((RUN / "test.json").read_bytes())
        judge.judge(folder, [])
        _KNOWN["results"] = (folder / "results.json").read_bytes()
    return _KNOWN["results"]


def _facts() -> bytes:
    """The part of the run's description that is learnt, as run.json has it."""
    test = json.loads((RUN / "test.json").read_bytes())
    learnt = ("versions", "ready_s", "started", "checkers", "not_checked", "schedule")
    return json.dumps({name: test[name] for name in learnt if name in test}).encode()


def _lincheck(model: str) -> Callable[[bytes], Answer]:
    def hand(content: bytes) -> Answer:
        Path("file").write_bytes(content)
        limits = ("--time-limit", "2", "--memory-limit", "300")
        return command("lincheck", "--model", model, *limits, "file")

    return hand


def _init(content: bytes) -> Answer:
    Path("file").write_text(REGISTER)
    text = content.decode(errors="replace").replace("\0", "")
    return command("lincheck", "--model", "register", f"--init={text}", "file")


SERVERS, CLIENTS = [f"redis-{n}" for n in range(1, 6)], [f"client-{n}" for n in range(1, 4)]
LAYOUT = Layout(
    SERVERS, CLIENTS, ttl_s=2.0, restart_s=0.0, kind=KINDS["redis"], replicated=True, leads=True
)


def _schedule() -> bytes:
    drawn = schedule.draw(("partition", "pause", "clock", "kill", "delay"), 3, 12, 3, LAYOUT)
    rows = [fault.to_json() for fault in drawn[:8]]
    return json.dumps([*rows, {"at_s": 1, "duration_s": 2, "fault": "partition:halves"}]).encode()


def _scenario() -> bytes:
    """Return a scenario as a hunt writes it."""
    steps = (
        Timed(Begin("client-1", "acquire", None, ("step-4", "step-6-connected")), 0.0, True),
        Timed(Reach("client-1", "step-4", "until its SET to redis-2"), 0.1),
        Timed(Inject("hold-1", "pause", ("client-1",), {"point": "step-4"}), 0.1),
        Timed(Inject("jump", "clock", ("redis-1",), {"offset_s": 8.8}), 0.2),
        Timed(Do("client-2", "acquire", "ok", True), 9.0, True),
        Timed(Heal("hold-1"), 9.1),
        Timed(Finish("client-1", "info"), 9.2),
        Pass(0.5),
    )
    scenario = Scenario(
        "hunt-redlock", (), "", "", "none", steps, {"lease_exclusion": False},
        {"retries": 3, "clock_check": True}, 2, 8000, "redlock", {"persistence": "none"},
    )  # fmt: skip
    return file.to_text(scenario, ("a note",), ()).encode()


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


REGISTER = "".join(
    json.dumps(row) + "\n"
    for row in (
        {"process": 0, "type": "invoke", "f": "write", "value": 1, "index": 0, "time": 5},
        {"process": 1, "type": "invoke", "f": "read", "value": None, "index": 1, "time": 6},
        {"process": 0, "type": "ok", "f": "write", "value": 1, "index": 2, "time": 7},
        {"process": 1, "type": "ok", "f": "read", "value": 1, "index": 3, "time": 8},
        {"process": 2, "type": "invoke", "f": "cas", "value": [1, 2], "index": 4, "time": 9},
        {"process": 2, "type": "info", "f": "cas", "value": [1, 2], "index": 5, "time": 10},
    )
)
MUTEX = "".join(
    json.dumps(row) + "\n"
    for row in (
        {"process": 0, "type": "invoke", "f": "acquire", "value": {"lock": "a", "ttl": 9}},
        {"process": 0, "type": "ok", "f": "acquire", "value": {"lock": "a", "deadline": 9}},
        {"process": 1, "type": "invoke", "f": "acquire", "value": {"lock": "a", "ttl": 9}},
        {"process": 0, "type": "invoke", "f": "release", "value": {"lock": "a"}},
        {"process": 0, "type": "ok", "f": "release", "value": {"lock": "a"}},
        {"process": 1, "type": "fail", "f": "acquire", "value": {"lock": "a"}},
    )
)
EDN = b"""; a register
[{:process 0, :type :invoke, :f :write, :value 1, :index 0, :time 12}
 #jepsen.history.Op{:process 1, :type :invoke, :f :cas, :value [1 2], :index 1}
 {:process 0, :type :ok, :f :write, :value 1N, "s" #{1 2} \\a nil} #_ {:x 2/3}
 {:process 1, :type :info, :f :cas, :value [1 2], :error :timeout}
 {:process 2, :type :invoke, :f :read, :value nil} {:process 2, :type :ok, :f :read, :value 1e0}]
"""
KV = b"""{:process 0, :type :invoke, :f :put, :key "0", :value "x"}
{:process 1, :type :invoke, :f :get, :key "0", :value nil}
{:process 0, :type :ok, :f :put, :key "0", :value "x"}
{:process 1, :type :ok, :f :get, :key "0", :value "x"}
"""
ETCD = b"""INFO  jepsen.util - 0\t:invoke\t:write\t2
INFO  jepsen.util - 1\t:invoke\t:read\tnil
INFO  jepsen.util - 0\t:ok\t:write\t2
INFO  jepsen.util - 1\t:ok\t:read\t2
INFO  jepsen.util - 2\t:invoke\t:cas\t[2 3]
INFO  jepsen.util - 2\t:info\t:cas\t:timed-out
"""
HOSTS = b"""[defaults]
key = "file"
known_hosts = "file"
user = "root"

[nodes.redis-1]
host = "127.0.0.1"
port = 22

[nodes.client-1]
host = "127.0.0.2"
address = "127.0.0.3"
user = "me"
sudo = true
"""


TOML = b"""[test]
lock = "redis"
time = "10s"
faults = ["kill", "pause"]
"""


def _project(content: bytes) -> Answer:
    Path("fencepost.toml").write_bytes(content)
    return command("test", "--help")


def doors() -> list[Door]:
    """Return all readers. Call it in a folder that it may write to."""
    test, run = (RUN / "test.json").read_bytes(), _run
    listing = ("ls", "show test", "compare test test", "site site --docs .")
    nights = ("ls", "site site --docs .", "nightly report", "nightly trend trend.html",
              "nightly report-issue")  # fmt: skip
    return [
        Door("analyze history.jsonl", _history(), spoil.lines, run("history.jsonl", "analyze")),
        Door("analyze test.json", test, spoil.json_text, run("test.json", "analyze")),
        Door("analyze run.json", _facts(), spoil.json_text, run("run.json", "analyze")),
        Door("analyze results.json", _results(), spoil.json_text, run("results.json", "analyze")),
        Door("report history.jsonl", _history(), spoil.lines, run("history.jsonl", "report")),
        Door("report test.json", test, spoil.json_text, run("test.json", "report")),
        Door("report results.json", _results(), spoil.json_text, run("results.json", "report")),
        Door("explain results.json", _results(), spoil.json_text, run("results.json", "explain")),
        Door("ls results.json", _results(), spoil.json_text, _stored("results.json", *listing)),
        Door("ls test.json", test, spoil.json_text, _stored("test.json", *listing)),
        Door("ls suite.json", _suite(), spoil.json_text, _stored("suite.json", *listing)),
        Door("ls matrix.json", _matrix(), spoil.json_text, _stored("matrix.json", *listing)),
        Door(
            "baseline suite.json", _suite(), spoil.json_text,
            _stored("suite.json", "nightly baseline test --baseline baseline.json"),
        ),
        Door("odd files and names", b"a seed", None, _odd),
        Door("night.json", _night(), spoil.json_text, _stored(nightly.FILE, *nights)),
        Door("page of a matrix", _matrix(), spoil.json_text, _page(matrix.render, "matrix.json")),
        Door("page of a sweep", _sweep(), spoil.json_text, _page(sweep.render, "sweep.json")),
        Door("page of a bench", _bench(), spoil.json_text, _page(bench.render, "bench.json")),
        Door("page of a suite", _suite(), spoil.json_text, _page(suite.render, "suite.json")),
        Door("fencepost.toml", TOML, None, _project),
        Door("replay test.json", test, spoil.json_text, _replay),
        Door(
            "schedule", _schedule(), spoil.json_text,
            partial(function, lambda path: schedule.read(path, 1, LAYOUT), ValueError),
        ),
        Door(
            "schedule.json", _scenario(), spoil.json_text,
            partial(function, _read_scenario, BadArguments),
        ),
        Door("hosts.toml", HOSTS, None, partial(function, hostsfile.read, BadArguments)),
        Door("lincheck jsonl", REGISTER.encode(), spoil.lines, _lincheck("cas-register")),
        Door("lincheck leases", MUTEX.encode(), spoil.lines, _lincheck("lease-mutex")),
        Door("lincheck edn", EDN, None, _lincheck("cas-register")),
        Door("lincheck porcupine-kv", KV, None, _lincheck("kv")),
        Door("lincheck porcupine-etcd", ETCD, None, _lincheck("cas-register")),
        Door("lincheck --init", b'{"a": [1, "x", null]}', spoil.json_text, _init),
    ]  # fmt: skip
