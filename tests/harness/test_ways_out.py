"""However a run ends: its history is judged, its notes say why, and nothing of it is left.

Whole runs on a cluster in memory (tests/harness/memory.py), each disturbed in one place.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fencepost.checker import history
from fencepost.harness import interrupts
from fencepost.harness.db import server
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.remote import RemoteError, Result
from fencepost.harness.run import judge, needs, results, site, timed, worker
from fencepost.harness.run.judge import Outcome
from fencepost.harness.run.recorder import Recorder
from fencepost.harness.run.run import run
from fencepost.harness.run.spec import Spec, scripted
from fencepost.nemesis import pause
from fencepost.nemesis.director import Director
from fencepost.nemesis.schedule import Scheduled
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.scenario import Begin, Do, Finish, Heal, Inject, Scenario
from harness.memory import Call, Cluster, Node
from harness.memory_service import Silent
from harness.recording import Full

OPTIONS = LOCKS["redis"].read_options({})
SPEC = Spec(
    "short", "redis", OPTIONS, concurrency=2, time_s=0.05, ttl_ms=200, liveness_bound_s=0.3,
    work={"think_ms": 1, "pause_ms": 1},
)  # fmt: skip
PAUSES = [
    Scheduled(0.01, 0.02, "pause", ["redis-1"], {}),
    Scheduled(0.02, 0.02, "pause", ["client-1"], {}),
]


@dataclass
class Ended:
    """A run that is over: what came of it, or what it raised, and what it wrote."""

    folder: Path
    outcome: Outcome | None
    error: BaseException | None

    @property
    def results(self):
        return json.loads((self.folder / "results.json").read_text())

    @property
    def notes(self):
        return " ".join(self.results["run_notes"])


@pytest.fixture
def short(monkeypatch, tmp_path):
    """Waits that are there for real servers are short, and the page is not laid out each time."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(timed, "_REST_S", 0.1)
    monkeypatch.setattr(timed, "_READ_S", 0.1)
    monkeypatch.setattr(timed, "_LOOK_S", 0.005)
    monkeypatch.setattr(worker, "_END_S", 0.05)
    monkeypatch.setattr(pause, "_STATE_S", 0.05)
    monkeypatch.setattr(site, "archive_for", lambda lock: b"")
    until = server._until
    monkeypatch.setattr(server, "_until", lambda true, most_s: until(true, min(most_s, 0.05)))
    monkeypatch.setattr(judge.report, "render", lambda run, *_: (run / "report.html").touch())


@pytest.fixture
def cluster(short):
    made = Cluster()
    made.up(needs.nodes([SPEC]))
    made.calls.clear()
    return made


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@pytest.fixture
def signals():
    """Signals are interrupts, as for a command; afterwards they are what they were."""
    before = {number: signal.getsignal(number) for number in ENDING}
    for number in ENDING:  # whoever runs the tests in the background may have them ignored
        signal.signal(number, signal.default_int_handler)
    interrupts.interrupt_on_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def carried_out(cluster, spec=SPEC, schedule=PAUSES, scenario=None, progress=lambda status: None):
    try:
        outcome, error = run(spec, cluster, progress, scenario, schedule), None
    except BaseException as raised:
        outcome, error = None, raised
    return Ended((results.root() / "latest").resolve(), outcome, error)


def assert_judged_and_put_away(ended, cluster, but=()):
    """`but`: nodes that nobody could reach."""
    assert ended.results["checkers"]
    assert (ended.folder / "report.html").exists()
    assert json.loads((ended.folder / "test.json").read_text())["seed"] == SPEC.seed
    times = [op.time for op in history.read(ended.folder / "history.jsonl")]
    assert times == sorted(times)
    assert [what for what in cluster.left if what.split(":")[0] not in but] == []
    assert listeners(but) == []
    # A signal that came once the run itself was over takes nothing away from its verdict.
    over = isinstance(ended.error, KeyboardInterrupt) and not ended.notes
    if ended.error is not None and not over:
        assert ended.results["valid"] is not True
        assert "The run ended before it was over" in ended.notes


def listeners(but=()):
    """The threads that go on listening to a client, but those of nodes that nobody could reach.

    They end with the client, a moment later.
    """
    found = [one for one in threading.enumerate() if one.name.startswith(("read ", "hear "))]
    found = [one for one in found if one.name.split()[1] not in but]
    for one in found:
        one.join(20)
    return [one.name for one in found if one.is_alive()]


def test_an_undisturbed_run_is_valid_and_has_its_report(cluster, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("FENCEPOST_RESULTS", str(results.root()))
    monkeypatch.setattr(worker, "_END_S", 0.05)
    ended = carried_out(cluster)
    assert_judged_and_put_away(ended, cluster)
    assert ended.outcome is not None and ended.outcome.valid is True
    assert ended.results["run_notes"] == []
    assert [fault["family"] for fault in ended.results["faults"]] == ["pause", "pause"]
    assert ended.outcome.verdicts["faults"].valid is True
    assert "Persistence" in (ended.folder / "report.html").read_text()
    assert (ended.folder / "nodes/redis-1/server.log").read_text() == "the server's log\n"


def test_a_fault_that_does_not_take_hold_leaves_the_verdict_open(cluster):
    cluster.deaf = {"redis-1"}
    ended = carried_out(cluster)
    assert_judged_and_put_away(ended, cluster)
    assert ended.outcome.verdicts["faults"].valid == "unknown"
    assert ended.outcome.valid == "unknown"


def test_a_broken_lock_is_found_out(cluster):
    cluster.service.broken = True
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert ended.outcome.verdicts["lease_exclusion"].valid is False


def test_a_violation_that_is_waited_for_ends_the_run_early(cluster, monkeypatch):
    monkeypatch.setattr("fencepost.harness.run.early_stop._EVERY_S", 0.01)
    cluster.service.broken = True
    ended = carried_out(cluster, replace(SPEC, time_s=60.0, until=("any",)), [])
    assert_judged_and_put_away(ended, cluster)
    assert ended.outcome.valid is False
    assert ended.results["stats"]["duration_s"] < 30


def kinds_of_calls(calls):
    """One of each kind of call, in the order in which they came."""
    return list({(call.node, call.verb, call.what[:30]): call for call in reversed(calls)}.values())


def undisturbed_calls(cluster):
    carried_out(cluster)
    return kinds_of_calls(cluster.calls)


def like(call, other):
    return (call.node, call.verb, call.what[:30]) == (other.node, other.verb, other.what[:30])


def fresh(call, action):
    """A cluster on which something happens at the first call of this kind."""
    cluster = Cluster()
    cluster.up(needs.nodes([SPEC]))
    done = threading.Event()

    def before(now):
        if like(now, call) and not done.is_set():
            done.set()
            action(cluster)

    cluster.before = before
    return cluster


def test_a_node_that_dies_at_any_call_ends_in_a_judged_run(cluster):
    """From that call on nothing that is asked of the node is answered."""
    for call in undisturbed_calls(cluster):

        def die(of, node=call.node):
            def dead(now):
                if now.node == node:
                    raise RemoteError(f"{node} is dead")

            of.before = dead
            dead(Call(node, "", ""))

        with fresh(call, die) as dying:
            ended = carried_out(dying)
            assert isinstance(ended.error, RemoteError | Crashed | None), call
            assert_judged_and_put_away(ended, dying, but={call.node})


@pytest.mark.parametrize("error", [OSError(28, "No space left"), ValueError("a defect of ours")])
def test_an_error_at_any_call_ends_in_a_judged_run_and_is_raised_if_nobody_can_deal_with_it(
    cluster, error
):
    for call in undisturbed_calls(cluster):

        def fail(of):
            raise error

        with fresh(call, fail) as failing:
            ended = carried_out(failing)
            assert ended.error in (error, None), call
            # What cannot be told to end or to go on stays until the nodes are removed.
            assert_judged_and_put_away(ended, failing, but={call.node})


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_at_any_call_ends_in_a_judged_run(cluster, signals, number):
    interrupted = 0
    for call in undisturbed_calls(cluster):
        with fresh(call, lambda of: os.kill(os.getpid(), number)) as hit:
            ended = carried_out(hit)
            assert isinstance(ended.error, KeyboardInterrupt | None), call
            interrupted += "The run ended before it was over" in ended.notes
            assert_judged_and_put_away(ended, hit)
    assert interrupted > 10


def test_a_second_signal_does_not_stop_the_putting_away(cluster, signals, capsys):
    at = {"SIGSTOP": signal.SIGTERM, "SIGCONT": signal.SIGHUP, "wait": signal.SIGINT}

    def disturb(call):
        number = at.pop(call.what or call.verb, None)
        if number is not None:
            os.kill(os.getpid(), number)

    cluster.before = disturb
    ended = carried_out(cluster)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert at == {}
    assert_judged_and_put_away(ended, cluster)
    assert "cleaning up" in capsys.readouterr().out


@pytest.mark.parametrize("number", ENDING)
def test_a_second_signal_at_any_call_of_the_healing_is_as_the_first(cluster, signals, number):
    """The first one comes while a server is stopped; from then on every call is disturbed."""
    interrupted = threading.Event()
    disturbed = []

    def before(call):
        if call.what == "SIGSTOP" and not interrupted.is_set():
            interrupted.set()
            os.kill(os.getpid(), signal.SIGINT)
        elif interrupted.is_set():
            disturbed.append(call)
            os.kill(os.getpid(), number)

    cluster.before = before
    ended = carried_out(cluster)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert {"signal", "state", "wait", "get"} <= {call.verb for call in disturbed}
    assert "The run ended before it was over: KeyboardInterrupt" in ended.notes
    assert_judged_and_put_away(ended, cluster)


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_signal_while_a_run_is_judged_counts_once_its_results_are_there(
    cluster, signals, monkeypatch, number, interrupted
):
    checking = judge.check

    def disturbed(*asked):
        os.kill(os.getpid(), number)
        found = checking(*asked)
        os.kill(os.getpid(), number)
        return found

    def before(call):
        if interrupted and call.what == "SIGSTOP":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(judge, "check", disturbed)
    cluster.before = before
    ended = carried_out(cluster)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert ended.results["checkers"]
    assert (ended.folder / "report.html").exists()
    assert cluster.left == []
    assert ended.results["valid"] == ("unknown" if interrupted else True)


def test_a_signal_just_before_the_healing_does_not_skip_it(cluster, monkeypatch):
    healing = Director.heal_all
    comes = [KeyboardInterrupt()]

    def heal_all(director):
        if comes:
            raise comes.pop()
        healing(director)

    monkeypatch.setattr(Director, "heal_all", heal_all)
    script = scenario(*PAUSED[:4])
    ended = carried_out(cluster, scripted("short", "redis", script, 0), [], script)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert_judged_and_put_away(ended, cluster)


def test_what_cannot_be_healed_is_named(cluster, signals, capsys):
    def before(call):
        if (call.node, call.what) == ("redis-1", "SIGCONT"):
            raise RemoteError("redis-1 is dead")
        if (call.node, call.what) == ("redis-1", "SIGSTOP"):
            os.kill(os.getpid(), signal.SIGQUIT)

    cluster.before = before
    ended = carried_out(cluster)
    words = "redis-1 is paused (redis-1 is dead)"
    assert f"This could not be healed: {words}." in ended.notes
    assert f"fencepost: warning: this could not be healed: {words}" in capsys.readouterr().err


def test_a_client_that_hangs_is_named_with_the_op_that_it_hangs_in(cluster):
    def answers(node, f):
        if (node, f) == ("client-2", "acquire"):
            raise Silent

    cluster.service.answers = answers
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert "client-2 did not come to rest: its acquire has no answer yet." in ended.notes
    assert ended.outcome.valid == "unknown"


def test_a_client_that_dies_by_itself_leaves_its_op_unknown_and_a_note(cluster):
    gone = threading.Event()

    def answers(node, f):
        if (node, f) == ("client-2", "write") and not gone.is_set():
            gone.set()
            remote = cluster.remote("client-2")
            remote.signal(remote.programs[0].pid, signal.SIGKILL)

    cluster.service.answers = answers
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert "client-2 did not come to rest: its program has ended." in ended.notes
    last = [op for op in history.read(ended.folder / "history.jsonl") if op.node == "client-2"][-1]
    assert (last.f, last.type, last.error[0]) == ("write", "info", "killed")


def writes(cluster, rubbish):
    """client-2 also writes this, whenever it is about to read."""

    def answers(node, f):
        if (node, f) == ("client-2", "read"):
            cluster.remote(node).programs[0].stdout.write(rubbish)

    cluster.service.answers = answers


RUBBISH = [b"\n", b"a.py:7: DeprecationWarning: \xff is old\n", b'{"time":1,"pro\n', b"{}{}\n"]


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_a_client_that_writes_rubbish_is_named_and_all_else_that_it_says_is_recorded(
    cluster, rubbish
):
    writes(cluster, rubbish)
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert ended.error is None
    assert ended.outcome.valid == ("unknown" if b"{" in rubbish else True)
    (said,) = [note for note in ended.results["notes"] if note.startswith("client-2 wrote ")]
    ops = [op for op in history.read(ended.folder / "history.jsonl") if op.node == "client-2"]
    assert {"read", "write", "release", "close"} <= {op.f for op in ops if op.type == "ok"}
    again = judge.judge(ended.folder)
    assert (again.valid, said in again.results["notes"]) == (ended.outcome.valid, True)


def test_a_history_that_cannot_be_written_is_a_crash_and_what_was_written_is_judged(
    cluster, monkeypatch
):
    full = threading.Event()

    def no_space(self, data):
        if self.counts["acquire", "ok"] > 2:
            full.set()
            self.failure = OSError(28, "No space left on device")
            raise self.failure
        self._file.write(data)

    monkeypatch.setattr("fencepost.harness.run.recorder.Recorder._write", no_space)
    ended = carried_out(cluster, schedule=[])
    assert full.is_set()
    assert isinstance(ended.error, OSError)
    assert "The history is not complete: No space left on device." in ended.notes
    assert_judged_and_put_away(ended, cluster)


def test_a_disk_that_fills_up_ends_the_run_with_the_history_that_it_had_room_for(
    cluster, monkeypatch
):
    starting = Recorder.start

    def start(recorder):
        starting(recorder)
        recorder._file = Full(recorder._file, 5000)

    monkeypatch.setattr(Recorder, "start", start)
    ended = carried_out(cluster, replace(SPEC, time_s=60.0), schedule=[])
    stored = ended.folder / "history.jsonl"
    assert isinstance(ended.error, OSError)
    assert ended.error.filename == str(stored)
    assert "The history is not complete: No space left on device." in ended.notes
    assert "Its recorder wrote" not in ended.notes
    assert_judged_and_put_away(ended, cluster)
    assert 4000 < stored.stat().st_size <= 5000


def test_a_fault_that_is_on_when_the_disk_is_full_is_healed(cluster, monkeypatch):
    def no_room(recorder, data):
        recorder.failure = OSError(28, "No space left on device")
        raise recorder.failure

    def before(call):
        if (call.node, call.what) == ("redis-1", "SIGSTOP"):
            monkeypatch.setattr(Recorder, "_write", no_room)

    cluster.before = before
    ended = carried_out(cluster, replace(SPEC, time_s=60.0), PAUSES[:1])
    assert isinstance(ended.error, OSError)
    assert cluster.left == []
    assert [call.what for call in cluster.calls if call.verb == "signal"][-1] == "SIGCONT"


def test_what_ended_a_run_is_told_and_not_that_it_could_not_be_judged(cluster, monkeypatch):
    def before(call):
        if call.verb == "spawn":
            raise RemoteError("client-1 is gone")

    def no_check(*_):
        raise ZeroDivisionError("a checker's defect")

    cluster.before = before
    monkeypatch.setattr(judge, "check", no_check)
    with pytest.raises(RemoteError, match="client-1 is gone"):
        run(SPEC, cluster, lambda status: None, schedule=[])
    assert cluster.left == []


def test_of_a_server_s_log_that_is_too_long_both_ends_are_kept_and_the_run_says_so(
    cluster, monkeypatch
):
    monkeypatch.setattr(server, "LOG_MOST", 20)
    long = {"stat": "5020\n", "head": "it starts\n", "tail": "\nit ends\n"}
    answering = Node.run

    def run(node, argv, **options):
        answer = answering(node, argv, **options)
        if node.node == "redis-1" and argv[0] in long:
            return Result(0, long[argv[0]], "")
        return answer

    monkeypatch.setattr(Node, "run", run)
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    kept = (ended.folder / "nodes/redis-1/server.log").read_text().split("\n")
    assert kept[0] == "it starts"
    assert "... 5000 bytes were left out here ..." in kept
    assert kept[-2] == "it ends"
    words = "redis-1/server.log is not complete: 5000 bytes in its middle are missing."
    assert (ended.notes, ended.outcome.valid) == (words, "unknown")


def test_a_run_whose_terminal_is_gone_goes_on(cluster, monkeypatch):
    monkeypatch.setattr("fencepost.harness.run.progress._EVERY_S", 0.005)
    told = []

    def gone(status):
        told.append(status)
        raise OSError(5, "Input/output error")

    ended = carried_out(cluster, progress=gone)
    assert len(told) == 1
    assert ended.outcome.valid is True


def scenario(*steps, expected=None):
    return Scenario(
        "stop", "C0", "", "", "none", tuple(steps), expected or {}, clients=2, ttl_ms=200
    )


PAUSED = (
    Do("client-1", "acquire"),
    Do("client-1", "read"),
    Begin("client-1", "write", stop_at="before-write"),
    Inject("stop", "pause", ("client-1",), {"point": "before-write"}),
    Do("client-2", "acquire", again=True),
    Do("client-2", "read"),
    Do("client-2", "write"),
    Do("client-2", "release"),
    Heal("stop"),
    Finish("client-1"),
)


def test_a_scenario_is_carried_out_step_by_step_and_then_somebody_gets_the_lock(cluster):
    script = scenario(*PAUSED)
    spec = scripted("short", "redis", script, 0)
    ended = carried_out(cluster, spec, [], script)
    assert_judged_and_put_away(ended, cluster)
    assert ended.results["run_notes"] == []
    # The write of the client that slept past its lease: nothing guards the resource.
    assert ended.outcome.verdicts["resource"].valid is False
    ops = [op for op in history.read(ended.folder / "history.jsonl") if op.f != "close"]
    assert [(op.node, op.f, op.type) for op in ops[-4:]] == [
        ("client-2", "acquire", "invoke"),
        ("client-2", "acquire", "ok"),
        ("client-2", "release", "invoke"),
        ("client-2", "release", "ok"),
    ]


def test_a_step_that_comes_out_otherwise_ends_the_scenario_and_says_which(cluster):
    script = scenario(Do("client-1", "acquire"), Do("client-2", "acquire"), *PAUSED[1:])
    ended = carried_out(cluster, scripted("short", "redis", script, 0), [], script)
    assert_judged_and_put_away(ended, cluster)
    assert ended.error is None
    assert "The schedule was not carried out: step 2, " in ended.notes
    assert "it completed as fail, and the schedule has ok" in ended.notes


def test_a_scenario_that_is_interrupted_asks_nobody_for_the_lock_any_more(cluster, signals):
    def disturb(call):
        if call.what == "SIGCONT":
            os.kill(os.getpid(), signal.SIGINT)

    cluster.before = disturb
    script = scenario(*PAUSED)
    ended = carried_out(cluster, scripted("short", "redis", script, 0), [], script)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert_judged_and_put_away(ended, cluster)
    asked = [op for op in history.read(ended.folder / "history.jsonl") if op.f == "acquire"]
    assert len([op for op in asked if op.node == "client-2" and op.type == "ok"]) == 1
