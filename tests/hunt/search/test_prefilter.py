"""The prefilter passes no record that a checker would find false."""

from __future__ import annotations

import os
from random import Random

import pytest

from fencepost.checker.checker import Checker, of_history
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.facts.grant_events import UNREACHABLE
from fencepost.checker.signs import GRANTED_BESIDE, GRANTED_EARLY, WROTE_LATE
from fencepost.checker.verdict import Verdict
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.prefilter import signs
from fencepost.hunt.sim.schedule import Schedule
from fencepost.workloads.contract.lock import Failed
from tests.hunt.libraries import needs

GOALS = [name for name, checker in CHECKERS.items() if checker.goal]
LOCKS = [
    ("redlock", {"token": "majority"}, "fenced"),
    ("redis", {"token": "incr", "watchdog": "true"}, "fenced"),
    ("redis", {"token": "paired"}, "paired"),
    ("redis-replicated", {}, "none"),
    ("broken-no-owner-check", {}, "none"),
    ("broken-check-then-delete", {"token": "incr"}, "compare-and-set"),
    ("broken-no-ttl", {}, "none"),
    ("broken-endless-watchdog", {}, "deadline"),
    ("broken-always-yes", {}, "none"),
    ("redlock-npm", {}, "none"),
    ("redis-py", {}, "none"),
    pytest.param("pottery", {}, "none", marks=needs("pottery")),
    pytest.param("python-redis-lock", {}, "none", marks=needs("python-redis-lock")),
    pytest.param(
        "python-redis-lock", {"auto_renewal": "true"}, "none", marks=needs("python-redis-lock")
    ),
    ("etcd", {}, "none"),
    ("chubby", {}, "fenced"),
]

# `make soak-checkers` runs many more.
SCHEDULES = int(os.environ.get("FENCEPOST_SCHEDULES", "500"))
# The part of them for the locks that take more than 20 ms a schedule.
_SLOW = {"pottery": 0.15, "python-redis-lock": 0.35}


def suspected(one, run):
    shown = signs(run.rows, run.came_back, one.bound_ns, one.promised, one.keeps_on)
    return {name for name, checker in CHECKERS.items() if checker.suspect(shown)}


def check(setting, lock, options, guard, count, seed, **more):
    one = setting(lock, options=options, guard=guard, **more)
    actions, random = table(one), Random(seed)
    drawer = Drawer(one, actions, 200, {})
    said = set()
    for _ in range(count):
        schedule, aims = drawer.draw(random)
        run = Run(one, schedule, actions, aims=aims).execute()
        goals = [goal for goal in GOALS if goal in one.test["checkers"]]
        broken = violations(run, goals, surely=True)
        assert set(broken) <= suspected(one, run), (run.exact_schedule, broken)
        said |= set(broken)
    return said


def test_a_dead_client_s_late_write_is_not_filtered_out(setting):
    one = setting("redis", options={"token": "incr", "watchdog": "true"}, guard="fenced")
    head, strikes = (44547, 0, 0, 0, 1), ((15, 36), (22, 31), (90, 37), (101, 9))
    run = Run(one, Schedule(head, strikes), table(one)).execute()
    assert "resource" in violations(run, ["resource"], surely=True)
    assert "resource" in suspected(one, run)


def test_writes_whose_answers_come_in_another_order_are_not_filtered_out(setting):
    """The holder of the lower token is answered first, and is applied last."""
    one = setting("etcd", guard="none")
    head, strikes = (59113, 1), ((36, 2), (134, 6), (143, 87))
    run = Run(one, Schedule(head, strikes), table(one)).execute()
    assert "fencing" in violations(run, ["fencing"], surely=True)
    assert "fencing" in suspected(one, run)


def granted(time, process, hold):
    """The rows of an acquire that is asked for and granted at once, for 100 ns."""
    value = {"deadline": time + 100, "token": None, "hold": hold}
    return [
        (time, process, "invoke", "acquire", {}, None, f"client-{process}", 0),
        (time + 1, process, "ok", "acquire", value, None, f"client-{process}", 0),
    ]


def test_a_grant_next_to_a_hold_whose_release_reached_no_server_is_a_sign():
    asked = (10, 0, "invoke", "release", {"hold": "a"}, None, "client-0", 0)
    failed = (30, 0, "fail", "release", {"hold": "a"}, Failed(UNREACHABLE, ""), "client-0", 0)
    alone = [*granted(1, 0, "a"), asked, failed]
    assert signs(alone, True, 1000) == set()
    both = [*granted(1, 0, "a"), asked, *granted(20, 1, "b"), failed]
    assert signs(both, True, 1000) == {GRANTED_EARLY, GRANTED_BESIDE}


def test_only_a_checker_without_a_rule_of_its_own_suspects_a_run_without_signs():
    by_signs = ("lease_exclusion", "linearizable", "fencing", "ownership", "liveness", "resource")
    assert not any(CHECKERS[name].suspect(()) for name in by_signs)
    other = Checker("any", "?", ("service",), of_history(lambda *_: Verdict(True, "")), "any")
    assert other.suspect(())


@pytest.mark.oracle
@pytest.mark.parametrize(("lock", "options", "guard"), LOCKS)
def test_no_checker_fails_a_record_that_the_prefilter_passes(setting, lock, options, guard):
    said = check(setting, lock, options, guard, round(SCHEDULES * _SLOW.get(lock, 1)), seed=2)
    assert said or lock in ("etcd", "chubby")


@pytest.mark.oracle
def test_neither_does_one_if_a_hold_continues_after_a_failed_release(setting):
    assert check(setting, "redlock", {}, "none", SCHEDULES // 2, seed=3, failed_release="nothing")


@pytest.mark.parametrize(
    ("kind", "before", "shown"),
    [
        ("refused", None, True),
        ("refused", 2, True),
        ("refused", 3, False),
        ("unreachable", None, False),
    ],
)
def test_a_refused_write_without_a_lower_token_is_suspected(kind, before, shown):
    def row(time, process, type, f, value, error=None):
        return time, process, type, f, value, error, f"client-{process}", time

    rows = []
    for process, token in ((0, before), (1, 2)):
        got = {"deadline": 100, "token": token, "hold": f"h{process}"}
        rows += [row(1, process, "invoke", "acquire", {}), row(2, process, "ok", "acquire", got)]
        write = {"hold": f"h{process}", "version": 0, "stored": 1}
        if process:
            rows.append(row(3, process, "fail", "write", write, Failed(kind)))
        elif before is not None:
            rows.append(row(3, process, "ok", "write", write))
    assert (WROTE_LATE in signs(rows, True, 1000)) is shown
