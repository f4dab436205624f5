"""The command lines that repeat something are built in one place, quoted for a shell."""

from __future__ import annotations

import shlex

import pytest

from fencepost.commandline import command, lock_options, option, settings
from fencepost.harness.hunting.hunts import described
from fencepost.report.pages.nightly import again as nightly_again
from fencepost.report.words.settings import again
from fencepost.workloads.scenarios.defects import DEFECTS


def test_a_command_is_quoted_for_a_shell():
    line = command("test", "my lock.py:MyLock", ["-o", "key=a b"], option("seed", 7))
    assert line == "fencepost test 'my lock.py:MyLock' -o 'key=a b' --seed 7"
    assert shlex.split(line)[2] == "my lock.py:MyLock"


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, []), ("", []), (False, []), (True, ["--x"]), (0, ["--x", "0"]), ("a", ["--x", "a"])],
)
def test_an_option_that_is_not_set_is_left_out(value, words):
    assert option("x", value) == words


def test_the_options_of_a_lock_are_written_as_they_are_read():
    assert lock_options({"fair": True, "tries": 3}) == ["-o", "fair=true", "-o", "tries=3"]


def test_settings_are_written_in_the_order_of_the_table():
    test = {"seed": 7, "nemesis": ["pause", "kill"], "server": {"etcd": "3.4"}, "ttl_ms": 500}
    assert settings(test) == [
        *("--nemesis", "pause,kill", "--server", "etcd=3.4", "--seed", "7", "--ttl", "500ms"),
    ]
    assert settings(test, "seed", "server") == ["--seed", "7", "--server", "etcd=3.4"]


def test_a_run_of_an_older_version_keeps_its_option(tmp_path):
    test = {"lock": {"name": "redis"}, "until_violation": True}
    assert again(test, tmp_path) == "fencepost test redis --until-violation"


@pytest.mark.parametrize("only", [[], ["suites", "hunts"]])
def test_a_nightly_run_is_repeated_with_its_parts(only):
    words = " --only suites,hunts" if only else ""
    night = {"budget_s": 900.0, "seed": 3, "only": only}
    assert nightly_again(night) == f"fencepost nightly run --budget 900s --seed 3{words}"


def test_a_hunt_is_repeated_with_all_that_it_was_given():
    hunt = described(
        "redlock",
        {"retries": "3"},
        {"guard": "none", "ttl": None, "seed": "7", "server": ["redis=7.0"]},
        faults="kill",
        search="exhaustive",
        clients=3,
    )
    assert hunt.again("--confirm") == (
        "fencepost hunt redlock -o retries=3 --faults kill --guard none --budget 60s --clients 3 "
        "--search exhaustive --depth 2 --seed 7 --server redis=7.0 --confirm"
    )
    assert hunt.on_real_servers("a/schedule.json") == (
        "fencepost test redlock --schedule a/schedule.json"
    )


def test_every_known_defect_has_a_command_for_each_of_its_ways():
    for defect in DEFECTS:
        assert len(defect.commands) == len(defect.ways)
        assert all(line.startswith("fencepost ") for line in defect.commands)
