"""A package that is not of this repository adds a suite; an invalid one breaks no other."""

from __future__ import annotations

import sys

import pytest

from fencepost.harness.campaigns.usable_suites import usable
from fencepost.harness.command import app, screen
from fencepost.workloads.scenarios.claims import CLAIMS
from fencepost.workloads.scenarios.registry import SUITES
from tests.packages import installed

OURS = list(SUITES)
VALID = """
from fencepost.workloads.scenarios.suite import Suite, TimedRun

SUITE = Suite("tidy", "A run in which nothing goes wrong.", "redis", (
    TimedRun("calm", "Nothing goes wrong.", {}, calm=True),
))
"""
INVALID = {
    "its claim does not exist": (
        VALID.replace("calm=True", "claims=('C99',)"),
        "entry calm: there is no claim 'C99'",
    ),
    "its guard needs what the lock does not give": (
        VALID.replace("calm=True", "guard='fenced'"),
        "guard fenced needs a fencing token, and redis gives none with these options.",
    ),
    "it has no entries": (
        VALID.replace('TimedRun("calm", "Nothing goes wrong.", {}, calm=True),', ""),
        "ValueError: suite 'tidy': give it a name, a sentence and entries.",
    ),
}
BLAMED = "package tidiness 1.2: entry point tidy = tidy_suite:SUITE in group fencepost.suites"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs the package with this code of its suite."""

    def install(code):
        installed(
            tmp_path, "tidiness", {"fencepost.suites": "tidy = tidy_suite:SUITE"},
            {"tidy_suite": code},
        )  # fmt: skip
        monkeypatch.syspath_prepend(tmp_path)
        SUITES.forget()

    yield install
    SUITES.forget()
    sys.modules.pop("tidy_suite", None)


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command line; its exit code and its output in one line."""
    monkeypatch.setenv("COLUMNS", "250")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", *words])
        screen.console.cache_clear()
        code = app.run()
        return code, " ".join(" ".join(capsys.readouterr()).split())

    return call


def test_a_package_s_suite_is_listed_and_has_its_runs(package, run):
    package(VALID)
    code, said = run("suite")
    assert code == 0 and "tidy 1 runs: fencepost suite tidy" in said
    found, bad = usable(0)
    assert bad == []
    (item,) = found["tidy"]
    assert item.expected["resource"] is True
    assert CLAIMS[item.entry.claims[0]].kind == "run"


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_suite_of_a_package_is_left_out_of_the_list_and_its_package_named(
    package, run, case
):
    text, why = INVALID[case]
    package(text)
    code, said = run("suite")
    assert code == 0
    assert [name for name in OURS if f"fencepost suite {name}" not in said] == []
    assert "fencepost suite tidy" not in said
    assert f"left out: {BLAMED} cannot be used: {why}" in said


@pytest.mark.parametrize("case", INVALID)
def test_all_suites_are_those_that_can_be_run(package, case):
    code, why = INVALID[case]
    package(code)
    found, (bad,) = usable(7)
    assert list(found) == OURS
    assert bad.startswith(f"{BLAMED} cannot be used: {why}")


def test_a_suite_that_cannot_be_registered_is_an_error_where_it_is_named(package, run):
    package(INVALID["its claim does not exist"][0])
    code, said = run("suite", "tidy")
    assert code == 254 and BLAMED in said
