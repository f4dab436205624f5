"""A third-party package adds a checker with one file."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from fencepost.checker.checkers import CHECKERS, sound
from fencepost.checker.verdict import Verdict
from fencepost.harness.campaigns.suite import entries
from fencepost.harness.command import screen, suite
from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting.hunts import described
from fencepost.harness.judge.judge import judge
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.hunt.search.prefilter import SAMPLE
from fencepost.report.pages.suite import contents
from fencepost.report.words.questions import questions
from fencepost.workloads.locks.registry import LOCKS
from tests.packages import installed

TIDY = '''
"""tidy: does every client close in the end?"""

from fencepost.checker.checker import Checker, of_history
from fencepost.checker.verdict import Verdict


def tidy(history, test):
    closed = {op.process for op in history.clients() if op.f == "close"}
    loud = [op for op in history.clients() if op.process not in closed]
    rows = [{"what": f"process {op.process} did not close", "time_ns": op.time} for op in loud[:1]]
    return Verdict(not loud, "Somebody did not close." if loud else "All closed.", rows)


CHECKER = Checker(
    name="tidy",
    question="Every client closed in the end.",
    about=("clients",),
    check=of_history(tidy),
    column="tidy",
    applies=lambda test: "nobody closes in shared mode" if test.get("shared") else None,
    touches=lambda history: len(history) > 0,
    goal=True,
)
'''


@pytest.fixture(autouse=True)
def tidy(tmp_path, monkeypatch):
    points = {"fencepost.checkers": "tidy = tidiness:CHECKER"}
    installed(tmp_path / "site-packages", "tidiness", points, {"tidiness": TIDY})
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    CHECKERS.forget()
    yield CHECKERS["tidy"]
    CHECKERS.forget()
    sys.modules.pop("tidiness", None)


def spec(**more):
    lock = more.pop("lock", "redis")
    return Spec(name="t", lock=lock, options=LOCKS[lock].read_options({}), **more)


def test_a_test_runs_it_or_says_why_not():
    assert "tidy" in spec().to_json()["checkers"]
    told = spec(shared=0.5).to_json()
    assert told["not_checked"]["tidy"] == "nobody closes in shared mode"


def test_until_accepts_it():
    assert validate(spec(until=("tidy",))).until == ("tidy",)
    with pytest.raises(BadArguments, match=r"there is no such checker; choose from: .*tidy"):
        validate(spec(until=("neat",)))


def test_a_control_run_expects_it_where_it_applies():
    assert sound({"lock": {"token": False}})["tidy"] is True
    assert "tidy" not in sound({"lock": {"token": False}, "shared": True})
    plain = entries("redis", 7)[0]
    assert (plain.name, plain.expected["tidy"]) == ("control", True)
    shared = replace(plain, specs=(replace(plain.spec, shared=0.5),))
    assert plain.expected.keys() - shared.expected.keys() == {"tidy", "linearizable"}


def test_a_hunt_searches_for_it_and_puts_every_run_to_it_where_it_is_named():
    assert "tidy" not in described("redis", {}, {}).setting.goals
    hunt = described("redis", {}, {"seed": "1"}, faults="kill", goal="tidy", budget="20s")
    assert hunt.setting.goals == ("tidy",)
    tried, find = hunt.carry_out(processes=1)
    assert find is not None and list(find.broken) == ["tidy"]
    assert tried.schedules < SAMPLE


def test_a_history_is_judged_by_it_and_the_report_shows_its_question(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    rows = [
        {"time": n, "process": 1, "type": kind, "f": "acquire", "value": {"lock": "a"}}
        for n, kind in enumerate(("invoke", "fail"))
    ]
    (run / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = judge(run)
    assert outcome.verdicts["tidy"] == Verdict(
        False,
        "Somebody did not close.",
        [{"what": "process 1 did not close", "time_ns": 0}],
    )
    believed = questions(outcome.results["checkers"])[1]
    assert ("tidy", "Every client closed in the end.") in [
        (part.checker, part.about) for part in believed.parts
    ]
    assert "Every client closed in the end." in (run / "report.html").read_text()


ROW = {
    "scenario": "s", "guard": "none", "claim": "", "expected": {"tidy": True},
    "observed": {"tidy": False}, "as_expected": False,
}  # fmt: skip


def test_the_suites_tables_have_its_column(capsys, monkeypatch):
    screen.console.cache_clear()
    suite._table([ROW])
    shown = capsys.readouterr().out
    assert "tidy" in shown and "F (T)" in shown
    found = contents("s", [ROW])
    assert found["scripted_checkers"] == ["tidy"]
    assert found["about_checker"]["tidy"] == "Every client closed in the end."
