"""The command that runs a stored test again, as its page and `show` name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.report.settings import again

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
