"""`jobs`: no job of a scheduler is done twice."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History, Op
from fencepost.checker.jobs import jobs

TEST = {"lock": {"name": "x", "elector": True, "drives_work": True}}


def wrote(*rows):
    """The history of writes: process, type (None: it never completed), jobs."""
    ops = []
    for place, (process, type, names) in enumerate(rows):
        value = {"resource": "account", "hold": f"{process}-1", "jobs": names}
        about = {"process": process, "f": "write", "value": value, "node": f"client-{process}"}
        ops.append(Op(index=len(ops), time=2 * place, type="invoke", **about))
        if type is not None:
            ops.append(Op(index=len(ops), time=2 * place + 1, type=type, **about))
    return History(ops)


def test_a_job_that_two_leaders_did_was_done_twice():
    verdict = jobs(wrote((0, "ok", ["a"]), (1, "ok", ["b"]), (2, "ok", ["c", "a"])), TEST)
    assert verdict.valid is False and verdict.details == {"jobs": 3, "jobs_twice": 1}
    assert "3 leaders did 3 jobs, 1 of them twice" in verdict.summary
    [row] = verdict.evidence
    assert "Job a was done twice: by client-0 (0-1)" in row["what"]
    assert row["holds"] == ["0-1", "2-1"] and row["ops"] == [0, 4]


@pytest.mark.parametrize("type", ["fail", "info", None])
def test_a_job_that_was_refused_or_may_not_have_arrived_can_be_done_again(type):
    verdict = jobs(wrote((0, type, ["a"]), (1, "ok", ["a"]), (2, "ok", ["b"])), TEST)
    assert verdict.valid is True and verdict.details["jobs"] == 2


def test_the_jobs_of_one_leader_decide_nothing():
    assert jobs(wrote((0, "ok", ["a"]), (0, "ok", ["b"])), TEST).valid == "unknown"
    assert jobs(wrote(), TEST).valid == "unknown"


def test_a_leader_that_does_a_job_again_is_accused_although_it_is_alone():
    assert jobs(wrote((0, "ok", ["a"]), (0, "ok", ["a"])), TEST).valid is False


def test_it_is_about_electors_that_drive_their_work():
    applies = CHECKERS["jobs"].applies
    assert applies(TEST) is None
    assert applies({"lock": {"name": "x", "elector": True}}) is not None


def test_it_agrees_with_counting_the_acknowledged_names():
    random = Random(1)
    seen = Counter()
    for _ in range(300):
        rows = [
            (number, random.choice(["ok", "ok", "fail", "info", None]),
             random.sample("abcdefgh", random.randint(0, 2)))
            for number in range(random.randint(0, 6))
        ]  # fmt: skip
        counts = Counter(name for _, type, names in rows if type == "ok" for name in names)
        leaders = {number for number, type, names in rows if type == "ok" and names}
        wanted = False if max(counts.values(), default=0) > 1 else len(leaders) > 1 or "unknown"
        assert jobs(wrote(*rows), TEST).valid == wanted, rows
        seen[wanted] += 1
    assert min(seen.values()) > 10 and len(seen) == 3
