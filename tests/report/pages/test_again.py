"""The command that repeats a stored test, and versions, as pages and commands show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.report.words.settings import again, named_versions

RUN = Path("results/redlock-clock-jump-none/20260102T030405Z")


@pytest.mark.parametrize(
    ("server", "words"), [({}, ""), ({"redis": "valkey"}, "--server redis=valkey ")]
)
def test_a_scenario_is_run_again_by_its_suite_alone(server, words):
    test = {
        "name": "redlock-clock-jump-none", "seed": 7, "server": server,
        "scenario": {"name": "clock-jump"},
    }  # fmt: skip
    assert again(test, RUN) == f"fencepost suite redlock --seed 7 {words}--only clock-jump"


def test_a_scenario_of_no_suite_that_is_known_has_no_command():
    assert again({"name": "mine", "seed": 7, "scenario": {"name": "clock-jump"}}, RUN) is None


def test_a_version_that_begins_with_the_program_s_name_has_it_once():
    versions = {"redis": "Redis 7.0.15", "redis-py": "8.1.0", "curator": "as Debian has it"}
    assert named_versions(versions) == [
        "Redis 7.0.15",
        "redis-py 8.1.0",
        "curator as Debian has it",
    ]
    inside = {"postgres": "PostgreSQL 15.18", "sentinel": "Redis 7.0.15 with Sentinel"}
    assert named_versions(inside) == ["PostgreSQL 15.18", "Redis 7.0.15 with Sentinel"]
