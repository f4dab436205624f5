"""Hunts with real client programs: found, played again, refused, and ended."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from fencepost.harness.command.hunt import _print_patience
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.hunting import replays
from fencepost.harness.hunting.hunts import described
from fencepost.harness.hunting.programs import conductor
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live import conductor as live
from fencepost.hunt.live.conductor import Job
from fencepost.hunt.live.program import Command, Program
from fencepost.hunt.live.search import _count
from fencepost.hunt.search.search import Tried
from fencepost.hunt.sim.schedule import Schedule
from fencepost.strictjson import decode
from fencepost.workloads.scenarios import file

pytestmark = pytest.mark.slow
SDK = Path(__file__).parents[3] / "sdk"
LOCK = Path(__file__).parent / "programs" / "lock.py"


node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


@pytest.fixture
def folder(tmp_path):
    """Lay the files out as a user does: the SDK in the program's folder."""
    shutil.copy(SDK / "python" / "fencepost_sdk.py", tmp_path)
    shutil.copy(SDK / "javascript" / "fencepost.js", tmp_path)
    shutil.copy(LOCK, tmp_path)
    shutil.copy(LOCK.with_suffix(".js"), tmp_path)
    return tmp_path


def hunt_of(folder, defect="", command="", ttl="300ms", guard=None, **more):
    program = command or f"{sys.executable} lock.py {defect or 'none'}"
    settings = {"seed": 1, "ttl": ttl, "guard": guard}
    return described("", {}, settings, servers="redis:1", program=program, ship=folder, **more)


def played(hunt, *schedules):
    with conductor(hunt.spec, hunt.setting, 1) as made:
        return list(made.play(Job(schedule) for schedule in schedules))


def ops(run, process):
    return [row[2:4] for row in run.rows if row[1] == process and row[2] != "invoke"]


def action(hunt, kind, client):
    found = enumerate(table(hunt.setting), 1)
    return next(n for n, one in found if one.kind == kind and one.client == client)


def test_real_clients_play_an_undisturbed_schedule_and_the_processes_stay(folder):
    runs = played(hunt_of(folder), Schedule(), Schedule())
    for run in runs:
        done = ("ok", "acquire"), ("ok", "read"), ("ok", "write"), ("ok", "release")
        assert set(done) <= set(ops(run, 0)) and set(done) <= set(ops(run, 1))
        assert run.came_back and min(run.moments) > 4
    assert runs[0].programs == runs[1].programs


def test_a_late_client_of_one_hunt_reaches_no_other_hunt(folder, monkeypatch):
    opened, listener = [], live._listener

    def noted(address):
        made = listener(address)
        opened.append(made.getsockname())
        return made

    monkeypatch.setattr(live, "_listener", noted)
    one, other = hunt_of(folder), hunt_of(folder)
    opened.clear()
    with conductor(one.spec, one.setting, 1) as first:
        (run,) = first.play([Job(Schedule())])
        left = set(opened)
        opened.clear()
        with conductor(other.spec, other.setting, 1) as second:
            (beside,) = second.play([Job(Schedule())])
    assert run.came_back and beside.came_back
    assert left and opened and not left & set(opened)


@pytest.mark.parametrize(
    ("defect", "asked", "guard"),
    [
        ("none", {}, "none"),
        ("none-with-tokens", {}, "fenced"),
        ("none-with-tokens", {"guard": "none"}, "none"),
    ],
)
def test_the_tokens_and_the_promises_of_a_program_are_known(folder, defect, asked, guard):
    hunt = hunt_of(folder, defect, **asked)
    assert (hunt.spec.guard, hunt.setting.guard) == (guard, guard)
    assert hunt.setting.promises("true_refusals") is (defect == "none-with-tokens")
    (run,) = played(hunt, Schedule())
    assert ("ok", "write") in ops(run, 0)


def test_a_hunt_looks_once_at_a_program(folder, monkeypatch):
    played, play = [], live.Conductor.play

    def noted(jobs):
        for job in jobs:
            played.append(job)
            yield job

    monkeypatch.setattr(live.Conductor, "play", lambda one, jobs: play(one, noted(jobs)))
    hunt = hunt_of(folder, budget="1ms")
    assert hunt.carry_out(1)[1] is None
    assert played.count(Job(Schedule())) == 1
    assert hunt.look.asked and min(hunt.look.moments) > 4


def test_a_program_that_speaks_version_1_is_started_for_each_schedule(folder):
    runs = played(hunt_of(folder, "version-1"), Schedule(), Schedule())
    assert all(("ok", "acquire") in ops(run, 0) and run.came_back for run in runs)
    assert runs[0].programs[0] is not runs[1].programs[0]


def test_a_client_is_killed_at_its_message_and_replaced(folder):
    hunt = hunt_of(folder, faults="kill")
    # The third message of client-1: the read of the resource is under way.
    killed, after = played(hunt, Schedule((), ((5, action(hunt, "kill", 0)),)), Schedule())
    assert killed.injected == [(5, action(hunt, "kill", 0))]
    assert ops(killed, 0)[-1][0] == "info" and killed.programs[0].dead
    assert after.programs[0] is not killed.programs[0] and ops(after, 0)


def test_a_client_that_is_paused_is_stopped_until_its_pause_ends(folder):
    hunt = hunt_of(folder, faults="pause:client")
    (run,) = played(hunt, Schedule((), ((1, action(hunt, "pause", 0)),)))
    (begun, ended) = [row[0] for row in run.rows if row[3] == "pause" and row[2] == "ok"]
    heard = [row[0] for row in run.rows if row[1] == 0]
    assert ended - begun >= 1.1 * hunt.setting.ttl_ns * 0.99
    # Its next event comes after it has continued.
    assert not [time for time in heard if begun + 20_000_000 < time < ended]


@pytest.fixture(params=["node", "go"])
def command(request, folder):
    """Return the command of a lock whose runtime reads its clocks again after a stop."""
    if not shutil.which(request.param):
        pytest.skip(f"needs {request.param}")
    if request.param == "node":
        return "node lock.js none"
    (folder / "fencepost").mkdir()
    shutil.copy(SDK / "go" / "fencepost.go", folder / "fencepost")
    shutil.copy(LOCK.with_suffix(".go"), folder / "main.go")
    (folder / "go.mod").write_text("module lock\n\ngo 1.19\n")
    env = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", "worker", "."], cwd=folder, env=env, check=True)
    return "./worker none"


def test_long_leases_take_no_time(folder, command):
    hunt = hunt_of(folder, command=command, ttl="600s", faults="pause:client")
    # The third message of client-1: it holds the lock.
    paused = Schedule((), ((5, action(hunt, "pause", 0)),))
    with conductor(hunt.spec, hunt.setting, 1) as made:
        first, second = made.play([Job(paused), Job(paused)])
        if any(one.clock is None for one in second.programs):
            pytest.skip("the clocks of a program cannot be set here")
        passed_s = [run.world.now / 1e9 for run in (first, second)]
    assert min(passed_s) > 600
    assert not first.late_ns and not second.late_ns
    for run in (first, second):
        assert ("ok", "acquire") in ops(run, 0) and ("ok", "acquire") in ops(run, 1)


@pytest.mark.parametrize(
    ("defect", "error", "words"),
    [
        ("elsewhere", BadArguments, "sent nothing to its servers"),
        ("ignores-lease", BadArguments, "ignores its lease: asked for 300 ms"),
        ("tls", BadArguments, "it speaks TLS to redis-1, and simulated servers have none"),
        ("prints", Crashed, "'listening on port 3000', which is no line of the protocol"),
        ("ends", Crashed, "ended with exit code 3: Error: no configuration"),
    ],
)
def test_a_program_that_cannot_be_hunted_is_refused_in_a_sentence(folder, defect, error, words):
    with pytest.raises(error, match=words):
        hunt_of(folder, defect, budget="1s").carry_out(1)


def test_a_program_that_is_never_ready_is_refused(folder, monkeypatch):
    monkeypatch.setattr(live, "_READY_S", 0.5)
    with pytest.raises(Crashed, match=r"it was not ready within 0\.5 s"):
        hunt_of(folder, command="sleep 100000", budget="1s").carry_out(1)


def test_a_program_that_keeps_its_first_address_is_started_for_each_schedule(folder, monkeypatch):
    monkeypatch.setattr(live, "_RESET_S", 60.0)
    first, second, third = played(hunt_of(folder, "keeps-address"), *[Schedule()] * 3)
    assert first.programs == second.programs and first.asked and not second.asked
    assert third.programs != second.programs and third.asked and third.came_back


def test_a_program_that_is_not_there_is_refused(folder):
    with pytest.raises(BadArguments, match="no-such-word is not on this machine"):
        hunt_of(folder, command="no-such-word").carry_out(1)


def test_a_lock_without_an_owner_check_is_found_without_a_hint(folder):
    found = hunt_of(folder, "no-owner-check", faults="pause,delay", budget="1200s").carry_out(8)[1]
    assert found is not None and {"ownership", "lease_exclusion"} & set(found.broken)
    often, of = found.came
    assert 0 < often <= of and of in (3, 10)
    assert found.story[-1].words.startswith(f"{next(iter(found.broken))} is violated")


@pytest.mark.skipif(not shutil.which("go"), reason="needs go")
def test_a_program_on_the_sdk_for_go_is_kept_and_its_defect_is_found(folder):
    (folder / "fencepost").mkdir()
    shutil.copy(SDK / "go" / "fencepost.go", folder / "fencepost")
    shutil.copy(LOCK.with_suffix(".go"), folder / "main.go")
    (folder / "go.mod").write_text("module lock\n\ngo 1.18\n")
    subprocess.run(["go", "build", "-o", "worker", "."], cwd=folder, check=True)
    runs = played(hunt_of(folder, command="./worker none"), Schedule(), Schedule())
    assert all(("ok", "release") in ops(run, 0) and run.came_back for run in runs)
    assert runs[0].programs == runs[1].programs
    hunt = hunt_of(folder, command="./worker no-owner-check", faults="pause,delay", budget="1200s")
    found = hunt.carry_out(8)[1]
    assert found is not None and {"ownership", "lease_exclusion"} & set(found.broken)


@node
def test_the_patience_of_a_client_is_seen_and_a_lease_that_suits_it_is_named(folder, capsys):
    hunt = hunt_of(folder, command="node lock.js none", faults="packet/loss")
    lost, sound = played(hunt, Schedule((), ((1, action(hunt, "packet/loss", None)),)), Schedule())
    tried = Tried()
    for run in (sound, lost):
        _count(tried, run)
    # It gives up after 100 ms.
    assert 90_000_000 < tried.patience_ns < 250_000_000
    _print_patience(tried, 2 * tried.patience_ns)
    assert not capsys.readouterr().out
    _print_patience(Tried(patience_ns=100_000_000), 150_000_000)
    said = " ".join(capsys.readouterr().out.split())
    assert "waits 100 ms for an answer, and a lease takes 150 ms" in said and "--ttl 300ms" in said


@node
def test_a_schedule_is_played_again_with_the_same_history_and_times(folder):
    # client-1 works for longer than its lease, and deletes the key of client-2.
    hunt = hunt_of(folder, command="node lock.js no-owner-check", faults="pause")
    with conductor(hunt.spec, hunt.setting, 4) as made:
        runs = list(made.play(Job(Schedule((0, 0, 3))) for _ in range(10)))
    told = Counter(str([row[1:4] for row in run.rows]) for run in runs if not run.hung)
    (often,) = [count for _, count in told.most_common(1)]
    assert often >= 8
    late_ns = [run.rows[-1][0] for run in runs if str([row[1:4] for row in run.rows]) in told]
    assert sorted(late_ns)[7] - min(late_ns) < hunt.setting.ttl_ns


@node
def test_a_counterexample_is_stored_with_its_picture_and_replayed_from_its_schedule(
    folder, monkeypatch
):
    monkeypatch.chdir(folder)
    command = "node lock.js lease-set-later"
    hunt = hunt_of(folder, command=command, faults="kill:client", budget="1200s")
    tried, find = hunt.carry_out(8)
    assert find is not None and list(find.broken) == ["liveness"]
    outcome, made = hunt.store(tried, find, "the command")
    scenario = file.read(decode((outcome.folder / "scenario.json").read_bytes()))[0]
    assert made is not None and scenario.steps == made.scenario.steps
    assert hunt.on_real_servers("scenario.json").startswith(
        "fencepost test --schedule scenario.json --program "
    )
    assert msgspec.json.decode((outcome.folder / "messages.json").read_bytes())["messages"]
    assert any(message.words.startswith("SETNX orders") for message in find.messages)
    assert "SETNX orders" in (outcome.folder / "report.html").read_text()
    schedule = outcome.folder / "schedule.json"
    again = hunt_of(folder, command=command, faults="kill:client", replay=schedule)
    assert again.replays == find.schedule
    found = again.carry_out(8)[1]
    assert found is not None and list(found.broken) == ["liveness"]
    sound = hunt_of(folder, command="node lock.js none", faults="kill:client", replay=schedule)
    assert sound.carry_out(8)[1] is None


def test_a_file_without_a_schedule_is_not_replayed(folder):
    with pytest.raises(BadArguments, match="is no schedule of real clients"):
        hunt_of(folder, replay=folder / "lock.py")
    (folder / "schedule.json").write_text('{"hunt": "", "broken": [], "schedule": [-1]}')
    with pytest.raises(BadArguments, match="out of range"):
        hunt_of(folder, replay=folder / "schedule.json")
    with pytest.raises(BadArguments, match="cannot be read: No such file"):
        hunt_of(folder, replay=folder / "missing.json")


@pytest.mark.parametrize("content", [b'{"hunt": "\xff"}', b'{"x": ' + b"[" * 3000 + b"]" * 3000])
def test_a_spoilt_schedule_is_refused(tmp_path, content):
    path = tmp_path / "schedule.json"
    path.write_bytes(content)
    with pytest.raises(BadArguments, match="is no schedule of real clients"):
        replays.read(path, 2)


def test_a_schedule_that_is_a_pipe_is_refused_and_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadArguments, match="cannot be read: it is not a regular file"):
        replays.read(tmp_path / "pipe", 2)


def test_a_simulated_hunt_replays_no_schedule(folder):
    with pytest.raises(BadArguments, match="--replay is for real clients"):
        described("redis", {}, {}, replay=folder / "schedule.json")


def test_nothing_is_left_when_the_hunt_is_killed(folder):
    words = ["hunt", "--program", f"{sys.executable} lock.py none", "--ship", str(folder)]
    words += ["--servers", "redis:1", "--processes", "2", "--faults", "pause"]
    hunt = subprocess.Popen(
        [sys.executable, "-m", "fencepost", *words], cwd=folder, start_new_session=True
    )
    try:
        assert until(lambda: len(clients(folder)) == 4), "its clients did not start"
    finally:
        hunt.send_signal(signal.SIGKILL)
        hunt.wait()
    assert until(lambda: not clients(folder)), "a client is left"


def clients(folder):
    """Return the pids of the programs that run in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
            if (entry / "cwd").resolve() == folder and b"\0lock.py\0" in words:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def until(true, within_s=60):
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return False


def test_a_program_s_last_lines_are_read_when_it_was_killed(tmp_path):
    words = ("sh", "-c", """printf '{"f": 1}\\n{"f": 2}\\n{"f"'; sleep 99""")
    program = Program(Command(words, tmp_path, {}), lambda message: None)
    select.select([program.output], [], [])
    program.strike()
    assert program.last_messages() == [{"f": 1}, {"f": 2}]
    program.close()
