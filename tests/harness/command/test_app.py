"""Bad arguments exit with 254 and the valid choices, before anything starts."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer

from fencepost.checker.lincheck import command as lincheck
from fencepost.harness.command import app, test
from fencepost.harness.command.exits import EXIT
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.spec.spec import Spec
from fencepost.registry import BadPlugin
from fencepost.workloads.locks.registry import LOCKS

ROOT = Path(__file__).parents[3]


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line where no engine may be used; return its exit code and last words."""

    def no_engine(*_, **__):
        raise AssertionError("an engine was looked for")

    monkeypatch.setattr("fencepost.harness.cluster.provision.docker_engine.ensure", no_engine)
    monkeypatch.setattr("subprocess.Popen", no_engine)
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fencepost", *arguments])
        code = app.run()
        said = capsys.readouterr()
        return code, said.err + said.out

    return call


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["test", "redlok"],
            "there is no lock 'redlok'; choose one of: redlock, redlock-npm, redis, ",
        ),
        (["test", "redlock", "--nemesis", "pause,flood"], "there is no fault 'flood'; choose"),
        (["test", "redlock", "--nemesis", "pause:redis-9"], "the test has no 'redis-9'; choose"),
        (["test", "redlock", "--nemesis", "kill:primary"], "none of its servers leads"),
        (["test", "redlock", "--nemesis", "clock:client/-1x"], "'1x' is not a duration"),
        (["test", "redlock", "--schedule", "/no/such"], "schedule /no/such cannot be read: No"),
        (
            ["test", "redlock", "--schedule", "/dev/null"],
            "schedule /dev/null cannot be read: it is not a regular file",
        ),
        (["test", "redlock", "--schedule", "x", "--nemesis", "pause"], "exclude one another"),
        (["test", "--replay", "nowhere"], "'nowhere' is not a run (the path of a folder, or"),
        (
            ["test", "--replay", "x", "--seed", "4"],
            "--replay takes all settings from the run that it names",
        ),
        (["test"], "which LOCK? `fencepost locks` lists them"),
        (["test", "redlock", "--guard", "high"], "there is no guard 'high'; choose one of: none,"),
        (["test", "redlock", "--guard", "fenced"], "guard fenced needs a fencing token"),
        (
            ["test", "redlock", "--time", "soon"],
            "time 'soon' is not a duration; write 500ms, 60s or 2m",
        ),
        (["test", "redlock", "--time", "-5s"], "time '-5s' is not a duration"),
        (["test", "redlock", "--ttl", "0"], "TTL 0 ms is out of range"),
        (["test", "redlock", "--ttl", "50ms"], "TTL 50 ms is out of range (100 ms to 10 min)"),
        (["test", "redlock", "--interval", "x"], "interval 'x' is not a duration"),
        (["test", "redlock", "--seed", "lucky"], "seed 'lucky' is not an integer (for example: 7)"),
        (["test", "redlock", "--concurrency", "99"], "clients 99 is out of range (1 to 10)"),
        (["test", "redlock", "--concurrency", "two"], "clients 'two' is not an integer"),
        (["test", "redlock", "--persistence", "rdb"], "there is no persistence 'rdb'; choose"),
        (["test", "redlock", "--restart", "no"], "there is no restart 'no'; choose one of"),
        (["test", "redlock", "--failed-release", "x"], "choose one of: ended, nothing"),
        (["test", "redlock", "--locks", "0"], "locks 0 is out of range (1 to 100)"),
        (["test", "redlock", "--locks", "101"], "locks 101 is out of range (1 to 100)"),
        (["test", "redlock", "--until", "owner"], "until owner: there is no such checker; choose"),
        (["test", "redlock", "--until", "fencing"], "does not run it (the lock issues no token"),
        (["test", "redlock", "--until", "ownership,liveness"], "judged once the run has ended"),
        (
            ["test", "redlock", "--until", "faults"],
            "until faults: it can only be judged once the run",
        ),
        (["test", "redlock", "--until", "store", "--until-violation"], "cannot be combined"),
        (["test", "redlock", "-o", "quorum=2"], "lock redlock has no option quorum; it has"),
        (["test", "redlock", "-o", "token"], "option 'token' has no value: write -o token=VALUE"),
        (["test", "redlock", "-o", "token=x"], "choose one of none, value, one, majority"),
        (["test"], "lock"),
        (["test", "redlock", "--tim", "60s"], "--tim"),
        (["tset", "redlock"], "tset"),
        (["suite", "mongo"], "there is no suite 'mongo'; choose one of: redlock, redis, zoo"),
        (["test", "redlock", "--nemesis", "failover"], "are: redis-replicated"),
        (["test", "redis", "--guard", "paired"], "Locks that do: redis -o token=paired"),
        (["test", "redis", "--guard", "transaction"], "Locks that do: etcd, chubby"),
        (
            ["test", "etcd", "--guard", "fenced", "--store", "etcd"],
            "choose one of: redis, postgres",
        ),
        (["test", "etcd", "--ttl", "2500ms"], "are whole seconds"),
        (["test", "zookeeper", "--ttl", "500ms"], "give no lease or session of less than 1000 ms"),
        (["test", "redis", "--shared", "0.5"], "redis has no shared mode; these have: chubby"),
        (
            ["test", "etcd", "--server", "etcd=3.6"],
            "there is no etcd '3.6'; choose one of: 3.5, 3",
        ),
        (["bench", "redlok"], "there is no lock 'redlok'"),
        (["suite", "redlock", "--only", "clok"], "no scenario 'clok'; choose one of: "),
        (["suite", "etcd", "redis", "--only", "queue", "--only", "clok"], "no scenario 'clok'; ch"),
        (["test", "redlock", "--remote", "telnet"], "no remote 'telnet'; choose one of: docker, s"),
        (["test", "redlock", "--hosts", "/none"], "/none cannot be read: No such file"),
        (["suite", "redlock", "--hosts", "/none"], "/none cannot be read: No such file"),
        (["heal", "--hosts", "/none"], "/none cannot be read: No such file"),
        (["suite", "redlock", "--seed", "x"], "seed 'x' is not an integer"),
        (
            ["analyze", "nowhere"],
            "'nowhere' is not a run (the path of a folder, or TEST, TEST/TIME,",
        ),
        (
            ["report", "nowhere"],
            "'nowhere' is not a run (the path of a folder, or TEST, TEST/TIME,",
        ),
        (["cluster", "up", "redis-9"], "there is no node or kind 'redis-9'; choose from: redis"),
    ],
)
def test_bad_arguments_exit_with_254_and_the_valid_values(run, arguments, message):
    code, said = run(*arguments)
    assert code == 254
    assert message in said


def test_a_host_that_a_test_needs_and_the_file_lacks_is_named_before_anything_starts(run, tmp_path):
    (tmp_path / "known_hosts").touch()
    file = tmp_path / "hosts.toml"
    file.write_text(
        "[defaults]\nknown_hosts = 'known_hosts'\n[nodes.redis-1]\nhost = '127.0.0.1'\n"
    )
    code, said = run("test", "redis", "--concurrency", "1", "--hosts", str(file))
    assert code == 254
    assert f"{file} does not name storage, client-1, which this test needs" in said


@pytest.mark.parametrize("arguments", [[], ["cluster"]])
def test_without_a_command_the_help_is_shown_and_the_exit_code_is_254(run, arguments):
    code, said = run(*arguments)
    assert code == 254
    assert "Usage: fencepost" in said


def test_help_is_no_error(run):
    code, said = run("test", "--help")
    assert code == 0
    assert "--nemesis" in said


HEAVY = ("docker", "paramiko", "pandas", "pygal", "rich", "jinja2", "msgspec", "redis")


@pytest.mark.parametrize(
    ("program", "light"),
    [
        ("import fencepost", (*HEAVY, "typer")),
        ("import sys; sys.argv = ['fencepost', '--help']; app.run()", HEAVY),
        ("import fencepost.harness.judge.judge", ("docker", "paramiko")),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(program, light):
    program = program.replace("app.run()", "from fencepost.harness.command import app; app.run()")
    listed = f"{program}\nimport sys\nprint('LOADED', *sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", listed],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    ).stdout
    loaded = set(said.partition("LOADED ")[2].split())
    assert "fencepost" in loaded
    assert loaded.isdisjoint(light)


def test_every_command_that_is_listed_can_be_called(run):
    _, listed = run("--help")
    for command in app.COMMANDS:
        assert f"  {command.name} " in listed
        if command.name != "lincheck":
            code, said = run(command.name, "--help")
            assert (code, f"fencepost {command.name}" in said) == (0, True)


def test_a_lock_s_options_are_shown_with_defaults_values_and_meaning(run):
    code, said = run("locks", "redlock")
    assert code == 0
    row = next(row for row in said.splitlines() if "retry_delay_ms" in row)
    assert "-o retry_delay_ms=   100 " in row
    assert "an integer, at least 1" in row
    assert LOCKS["redlock"].options["retry_delay_ms"].what in row


def bare(*arguments):
    """Run the command line with only the standard library installed."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "fencepost", *arguments],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_version_is_one_line_with_the_standard_library_alone():
    code, out, err = bare("--version")
    assert (code, err) == (0, "")
    assert out.startswith("fencepost") and out.count("\n") == 1


def test_missing_packages_are_reported_with_the_command_that_installs_them():
    code, _, err = bare("--help")
    assert code == 255
    assert "is not installed" in err and "pip install 'fencepost[harness]'" in err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BadArguments("no such thing"), 254, "fencepost: no such thing"),
        (BadPlugin("package acme 1.0: no lock"), 254, "fencepost: package acme 1.0: no lock"),
        (Crashed("no engine"), 255, "fencepost: no engine"),
        (OSError(28, "No space left on device", "x.jsonl"), 255, "x.jsonl: No space left"),
        (KeyboardInterrupt(), 130, "fencepost: interrupted"),
        (ZeroDivisionError("oops"), 255, "a defect of fencepost; please report it"),
    ],
)
def test_however_a_command_ends_its_exit_code_is_never_that_of_a_verdict(
    run, monkeypatch, error, code, message
):
    def fail(**_):
        raise error

    monkeypatch.setattr(app, "app", lambda called: fail)
    got, said = run("heal")
    assert got == code
    assert message in said


@pytest.mark.parametrize(("valid", "code"), [(True, 0), (False, 1), ("unknown", 2)])
def test_a_verdict_is_an_exit_code(valid, code):
    assert EXIT[valid] == code


def stored(tmp_path, **changed):
    """Return a run's folder with nothing left but the description."""
    spec = Spec("redlock", "redlock", LOCKS["redlock"].read_options({}), nemesis=("pause",))
    schedule = [
        {"at_s": 1.5, "duration_s": 1.0, "family": "pause", "targets": ["redis-4"], "arguments": {}}
    ]
    test = spec.to_json() | {"schedule": schedule, "seed": 77} | changed
    (tmp_path / "test.json").write_text(json.dumps(test))
    return str(tmp_path)


@pytest.fixture
def carried_out(monkeypatch):
    """Return the tests that would run: each spec with its schedule."""
    done = []

    @contextmanager
    def brought_up(*_, **__):
        yield None

    def carry_out(spec, cluster, progress, scenario=None, schedule=None):
        done.append((spec, schedule))
        raise BadArguments("enough")

    monkeypatch.setattr(test, "cluster_for", brought_up)
    monkeypatch.setattr(test, "run", carry_out)
    return done


def test_a_replay_has_the_run_s_spec_its_seed_and_its_faults_at_their_offsets(
    run, carried_out, tmp_path
):
    run("test", "--replay", stored(tmp_path))
    ((spec, schedule),) = carried_out
    assert (spec.lock, spec.seed, spec.nemesis) == ("redlock", 77, ("pause",))
    assert [(fault.at_s, fault.targets) for fault in schedule] == [(1.5, ["redis-4"])]


def test_a_replay_may_be_on_another_lock_that_has_the_nodes(run, carried_out, tmp_path):
    run("test", "node-redlock", "--replay", stored(tmp_path), "--until-violation")
    ((spec, schedule),) = carried_out
    assert (spec.lock, spec.until, len(schedule)) == ("node-redlock", ("any",), 1)
    code, said = run("test", "redis", "--replay", stored(tmp_path))
    assert code == 254
    assert "fault 1: the test has no node 'redis-4'" in said


def test_an_error_that_stops_a_replay_is_reported_again(run, carried_out, tmp_path):
    folder = stored(tmp_path, until=["resource"], locks=3)
    run("test", "--replay", folder)
    run("test", "--replay", folder, "--until", "store, ownership,store")
    assert [spec.until for spec, _ in carried_out] == [(), ("store", "ownership")]
    assert [spec.locks for spec, _ in carried_out] == [3, 3]


def test_a_schedule_s_faults_become_the_test_s_faults(run, carried_out, tmp_path):
    path = tmp_path / "faults.json"
    path.write_text('[{"at_s": 2, "duration_s": 1, "fault": "clock:redis-2/+5s"}]')
    run("test", "redlock", "--schedule", str(path), "--time", "5s")
    ((spec, schedule),) = carried_out
    assert spec.nemesis == ("clock",)
    assert schedule[0].arguments["offset_s"] == 5
    code, said = run("test", "redlock", "--schedule", str(path), "--time", "1s")
    assert code == 254
    assert "a fault at 2 s is after the end of a run of 1 s; use --time 3s" in said


# lincheck has a parser of its own, whose examples are below.
EXAMPLES = [
    (command, one) for command in app.COMMANDS for one in command.examples if not command.takes_all
]


@pytest.mark.parametrize("command", app.COMMANDS, ids=lambda command: command.name)
def test_every_command_has_an_example(command):
    assert command.examples
    assert all(one.startswith(f"fencepost {command.name}") for one in command.examples)


@pytest.mark.parametrize(("command", "example"), EXAMPLES, ids=lambda one: str(one))
def test_an_example_is_in_the_help_and_can_be_called(run, command, example):
    words = shlex.split(example)[1:]
    action = words[:2] if ":" not in command.home else words[:1]
    code, said = run(*action, "--help")
    assert code == 0
    assert example in " ".join(said.split())
    made = typer.main.get_command(app.app(words[0]))
    for name in action:
        made = made.commands[name]
    made.make_context(words[0], words[len(action) :])  # raises if it has no such option


def test_the_examples_of_lincheck_can_be_called(capsys):
    parser = lincheck._parser()
    shown = [line.strip() for line in parser.format_help().splitlines()]
    found = [line for line in shown if line.startswith("fencepost lincheck ")]
    assert len(found) == 2
    for line in found:
        assert parser.parse_args(shlex.split(line)[2:]).model
