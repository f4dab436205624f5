"""fencepost.toml, and `fencepost init`, which writes one."""

from __future__ import annotations

import sys
from contextlib import contextmanager

import pytest

from fencepost.harness import old_names
from fencepost.harness.command import app, check, test
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec.spec import schedule_of
from fencepost.harness.userlock.project import PLACES
from tests.full_disk import no_file_may_grow


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    (tmp_path / "mylock.py").write_text("class MyLock: ...\n")
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line; return its exit code and output."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fencepost", *arguments])
        code = app.run()
        said = capsys.readouterr()
        return code, said.err + said.out

    return call


@pytest.fixture
def described(monkeypatch, run):
    """Return the test that a command line describes; nothing starts."""
    specs = []

    @contextmanager
    def no_cluster(given, *_, **__):
        specs.extend(given)
        raise BadArguments("enough")
        yield

    def call(*arguments):
        specs.clear()
        _, said = run(*arguments)
        assert specs, said
        return specs[0]

    for command in (test, check):
        monkeypatch.setattr(command, "cluster_for", no_cluster)
    return call


TOML = """
lock = "mylock.py:MyLock"
servers = "redis:3"
faults = ["pause:client", "kill:client"]
time = "8s"
concurrency = 3
option = ["wait=2"]
fail-on = "service,data"
ends_with = "close"
"""


def test_a_project_file_describes_a_test_without_arguments(here, described):
    (here / "fencepost.toml").write_text(TOML)
    spec = described("test")
    assert (spec.lock, spec.own.servers.count, spec.own.ends_with) == ("MyLock", 3, "close")
    assert (spec.nemesis, spec.time_s) == (("pause:client", "kill:client"), 8.0)
    assert (spec.concurrency, dict(spec.options)) == (3, {"wait": 2})


@pytest.mark.parametrize("key", ["clients", "concurrency"])
def test_a_file_may_use_any_of_a_setting_s_names(here, described, capsys, key):
    (here / "fencepost.toml").write_text(TOML.replace("concurrency", key))
    assert described("test").concurrency == 3
    assert "is now" not in capsys.readouterr().err


def test_a_file_may_use_a_setting_s_name_of_the_last_version_and_is_told_the_new_one(
    here, described, monkeypatch, run
):
    monkeypatch.setattr(old_names, "RENAMED", {"test": {"period": "time"}})
    (here / "fencepost.toml").write_text(TOML.replace("time", "period"))
    assert described("test").time_s == 8.0
    _, said = run("test")
    assert "fencepost: period is now time" in said


def test_the_command_line_overrides_the_file(here, described):
    (here / "fencepost.toml").write_text(TOML)
    spec = described("test", "--time", "2s", "--nemesis", "pause", "-o", "wait=5")
    assert (spec.time_s, spec.nemesis, dict(spec.options)) == (2.0, ("pause",), {"wait": 5})
    assert spec.concurrency == 3


def test_a_project_file_does_not_apply_to_a_lock_named_on_the_command_line(here, described):
    (here / "fencepost.toml").write_text(TOML)
    spec = described("test", "redlock")
    assert (spec.lock, spec.time_s, spec.nemesis) == ("redlock", 60.0, ())


def test_check_takes_its_own_settings_from_the_file_and_passes_over_the_others(here, run):
    (here / "fencepost.toml").write_text(TOML.replace("redis:3", "redis:77"))
    code, said = run("check")
    assert (code, "servers 'redis:77': write redis:N" in said) == (254, True)


@pytest.mark.parametrize("command", ["test", "check"])
def test_servers_that_are_there_already_are_named_alike_for_a_test_and_a_check(
    here, described, command
):
    spec = described(command, "mylock.py:MyLock", "--containers", "redis=r1,r2:7000")
    assert [(one.node, one.port) for one in spec.foreign.servers] == [("r1", None), ("r2", 7000)]
    (here / "compose.yml").touch()
    words = ["--compose", "compose.yml", "--servers", "db"]
    spec = described(command, "mylock.py:MyLock", *words)
    assert (spec.foreign.compose.name, spec.servers) == ("compose.yml", ["db"])


def test_a_check_of_a_service_of_no_compose_file_is_refused(here, run):
    words = ["--containers", "r1", "--compose", "compose.yml", "--servers", "db"]
    code, said = run("check", "mylock.py:MyLock", *words)
    assert (code, "--compose and --containers exclude one another" in said) == (254, True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "lok = 'x'\n",
            "there is no setting of fencepost.toml 'lok'; choose one of: lock, nemesis",
        ),
        ("lock = \n", "fencepost.toml cannot be read: "),
        ("[lock]\nname = 'x'\n", "fencepost.toml: lock is a table; write it as a value"),
        ("quiet = 'yes'\n", "fencepost.toml: quiet must be true or false, not 'yes'"),
        (
            "lock = 'mylock.py:MyLock'\n",
            "mylock.py:MyLock needs servers: add for example --servers redis:1",
        ),
        (
            "lock = 'mylock.py:MyLock'\nservers = 'redis'\ntime = 'soon'\n",
            "'soon' is not a duration",
        ),
    ],
)
def test_an_invalid_project_file_gives_one_sentence(here, run, text, why):
    (here / "fencepost.toml").write_text(text)
    code, said = run("test")
    assert (code, why in said) == (254, True), said


@pytest.mark.parametrize("options", [(), ("--asyncio",)])
def test_init_writes_a_project_that_a_test_can_be_made_of(here, run, described, options):
    (here / "mylock.py").unlink()
    code, said = run("init", *options)
    assert ("async def acquire" in (here / "mylock.py").read_text()) is bool(options)
    assert (code, said.count("wrote ")) == (0, len(PLACES))
    spec = described("test")
    assert (spec.lock, spec.guard, spec.own.python) == (
        "MyLock",
        "fenced-version",
        "mylock.py:MyLock",
    )
    for place in PLACES.values():
        if place.endswith(".py"):
            compile((here / place).read_text(), place, "exec")


def test_init_changes_no_existing_file(here, run):
    code, said = run("init")
    assert (code, "kept mylock.py, which exists already" in said) == (0, True)
    assert (here / "mylock.py").read_text() == "class MyLock: ...\n"
    assert run("init")[1].count("kept ") == len(PLACES)
    assert "wrote " not in run("init")[1]


def test_init_on_a_full_disk_ends_with_255_and_leaves_no_torn_file(here, run):
    with no_file_may_grow():
        code, said = run("init", "new")
    assert code == 255 and said.startswith("fencepost: cannot write new/fencepost.toml: ")
    assert [path for path in (here / "new").rglob("*") if path.is_file()] == []
    code, said = run("init", "new")
    assert code == 0 and said.count("wrote ") == len(PLACES)


def test_init_names_a_file_that_it_cannot_write(here, run):
    code, said = run("init", "mylock.py")
    assert (code, "cannot write mylock.py/fencepost.toml: File exists" in said) == (254, True)


@pytest.mark.parametrize("seed", range(10))
def test_the_project_that_init_writes_lets_clients_sleep_with_the_lock_repeatedly(
    here, run, described, seed
):
    """Without that, no run contains a release that deletes another's lock."""
    (here / "mylock.py").unlink()
    assert run("init")[0] == 0
    spec = described("test", "--seed", str(seed))
    asleep = [fault for fault in schedule_of(spec) if fault.arguments.get("until") == "other-holds"]
    assert len(asleep) >= 3
    # Long enough that the lease expires in any case.
    assert all(fault.duration_s > spec.ttl_ms / 1000 for fault in asleep)
