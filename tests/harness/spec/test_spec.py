"""An invalid spec is refused with the valid values."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.execute.scripted import of_suite
from fencepost.harness.spec.respec import respec
from fencepost.harness.spec.spec import Spec, counts_requests, layout_of, seconds, work_of
from fencepost.harness.spec.validation import validate
from fencepost.harness.userlock.servers import Servers
from fencepost.harness.userlock.user_lock import UserLock
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.registry import SUITES

GOOD = Spec(name="redlock", lock="redlock", options=LOCKS["redlock"].read_options({}))
SENTINEL = {"lock": "redis-sentinel", "options": LOCKS["redis-sentinel"].read_options({})}


def options(**chosen):
    return {**GOOD.options, **chosen}


@pytest.mark.parametrize("server", [{}, {"redis": "sentinel"}])
def test_a_lock_has_the_servers_that_it_needs_whether_or_not_they_are_asked_for(server):
    spec = validate(replace(GOOD, **SENTINEL, server=server, store="sentinel"))
    layout = layout_of(spec)
    assert (layout.kind.role, layout.leads, layout.replicated, layout.loses) == (
        "redis", True, False, True,
    )  # fmt: skip


def test_the_defaults_are_valid():
    assert validate(GOOD) is GOOD


@pytest.mark.parametrize(
    "changed",
    [
        {"ttl_ms": 300},
        {"ttl_ms": 600_000},
        {"time_s": 1},
        {"time_s": 86_400},
        {"concurrency": 1},
        {"concurrency": 10},
        {"nemesis": ("partition", "pause:client=2", "clock:redis-3/+1h@9s", "kill")},
        {"restart": "never"},
        {"restart": "1500ms"},
        {"locks": 100},
        {"until": ("any", "resource")},
        {"hold": "0", "think": "100ttl"},
        {"hold": "ttl..1h", "think": "0..0"},
        {"hold": "1.5ttl..3s", "contention": "5..all"},
        {"contention": "1", "concurrency": 1},
        {"guard": "fenced", "options": options(token="one")},
    ],
)
def test_a_value_at_its_bounds_is_valid(changed):
    validate(replace(GOOD, **changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lock": "redlok"}, "there is no lock 'redlok'; choose one of: redlock, redlock-npm, "),
        ({"guard": "fence"}, "there is no guard 'fence'; choose one of: none, "),
        (
            {"nemesis": ("pause", "flood")},
            "there is no fault 'flood'; choose one of: partition, delay, packet, pause, ",
        ),
        ({"aim": True}, "--aim needs --nemesis: name the faults to aim"),
        (
            {"aim": True, "nemesis": ("kill:rolling",)},
            "nemesis kill:rolling: a rolling fault has no moment: leave --aim out, or name kill",
        ),
        (
            {"hold": "long"},
            "hold 'long' is not a length of time; write for example 20ms, 1.5ttl or 0.9ttl..1.2ttl",
        ),
        ({"hold": "2ttl..3s"}, "hold '2ttl..3s' is empty: its first length is above its second"),
        ({"think": "101ttl"}, "think '101ttl' is out of range (up to 100ttl)"),
        ({"think": "0..61m"}, "think '61m' is out of range (up to 1 h)"),
        (
            {"contention": "many"},
            "contention 'many' is not a number of clients; write for example 2, 2..4 or",
        ),
        ({"contention": "6"}, "contention '6' is out of range: there are 5 clients (1 to 5)"),
        ({"contention": "0..2"}, "contention '0' is out of range: there are 5 clients"),
        ({"contention": "4..2"}, "contention '4..2' is empty: its first number is above its"),
        ({"nemesis": ("pause:redis-9",)}, "nemesis pause:redis-9: the test has no 'redis-9'"),
        ({"nemesis": ("kill:primary",)}, "none of its servers leads"),
        (
            {"persistence": "rdb"},
            "there is no persistence 'rdb'; choose one of: none, everysec, always",
        ),
        ({"restart": "later"}, "there is no restart 'later'; choose one of: at-once, after-ttl"),
        (
            {"failed_release": "maybe"},
            "there is no failed release 'maybe'; choose one of: ended, nothing",
        ),
        ({"concurrency": 0}, "clients 0 is out of range (1 to 10)"),
        ({"concurrency": 11}, "clients 11 is out of range (1 to 10)"),
        ({"locks": 0}, "locks 0 is out of range (1 to 100)"),
        ({"locks": 101}, "locks 101 is out of range (1 to 100)"),
        (
            {"until": ("fencing",)},
            "until fencing: this test does not run it (the lock issues no token",
        ),
        (
            {"until": ("linearizable",), "lock": "chubby", "ttl_ms": 2000, "shared": 0.5}
            | {"options": LOCKS["chubby"].read_options({})},
            "until linearizable: this test does not run it (shared holds",
        ),
        ({"ttl_ms": 99}, "TTL 99 ms is out of range (100 ms to 10 min)"),
        ({"ttl_ms": 600_001}, "TTL 600.001 s is out of range (100 ms to 10 min)"),
        ({"time_s": 0.5}, "time 500 ms is out of range (1 s to 24 h)"),
        ({"time_s": 86_401}, "time 86401 s is out of range (1 s to 24 h)"),
        (
            {"ttl_ms": 250},
            "node_timeout_ms 50 on 5 server(s) can use up the whole TTL of 250 ms: set it far",
        ),
        (
            {"guard": "fenced"},
            "guard fenced needs a fencing token, and redlock gives none with these options. "
            "Locks that do: "
            "redlock -o token=value, redlock -o token=one, redlock -o token=majority, "
            "redis -o token=incr",
        ),
        (
            {"server": {"redis": "sentinel"}},
            "redlock does not ask sentinel for the primary; these locks do: redis-sentinel",
        ),
        (
            {"store": "sentinel"},
            "store sentinel is a store of the lock's servers, and redlock runs on other servers; "
            "locks that run on them: ",
        ),
        (
            {"store": "jetstream", "guard": "compare-and-set"},
            "store jetstream is a store of the lock's servers, and redlock runs on other servers; "
            "locks that run on them: nats",
        ),
        (
            SENTINEL | {"server": {"redis": "valkey"}},
            "redis-sentinel needs redis=sentinel: leave --server out",
        ),
        (SENTINEL | {"nemesis": ("failover",)}, "Sentinel fails over by itself"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_the_valid_ones(changed, message):
    with pytest.raises(BadArguments) as error:
        validate(replace(GOOD, **changed))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 0.5), ("60s", 60), ("2m", 120), ("1.5h", 5400), ("60", 60), (" 0.5 s ", 0.5)],
)
def test_a_time_is_read_with_its_unit_and_in_seconds_without(text, expected):
    assert seconds("time", text) == expected


@pytest.mark.parametrize("text", ["", "0", "0s", "-5s", "5d", "five", "5 5", "1e3", ".5s", "nan"])
def test_a_duration_that_is_not_positive_is_an_error_with_the_format(text):
    with pytest.raises(BadArguments) as error:
        seconds("TTL", text)
    assert (
        str(error.value)
        == f"TTL {text!r} is not a duration; write 500ms, 60s or 2m (greater than zero)"
    )


@given(st.text(max_size=8))
@settings(max_examples=100)
def test_any_text_is_a_time_above_zero_or_bad_arguments(text):
    with suppress(BadArguments):
        assert seconds("time", text) > 0


def test_a_choice_is_one_of_the_valid_names():
    assert choose("lock", "redis", LOCKS) == "redis"


def test_a_description_holds_all_that_a_checker_and_a_reader_need():
    row = replace(GOOD, concurrency=2, seed=7).to_json()
    assert row["lock"] == {
        "name": "redlock",
        "options": GOOD.options,
        "ends_with": "lease",
        "token": False,
    }
    assert row["servers"] == [f"redis-{n}" for n in range(1, 6)]
    assert row["clients"] == ["client-1", "client-2"]
    assert row["promises"] == {"minority": True}
    assert row["not_checked"] == {"fencing": "the lock issues no token"}
    assert "fencing" not in row["checkers"]
    assert (row["seed"], row["failed_release"]) == (7, "ended")
    assert json.loads(json.dumps(row))["ttl_ms"] == 2000


def test_with_tokens_fencing_is_checked():
    row = replace(GOOD, options=options(token="one")).to_json()
    assert "fencing" in row["checkers"]
    assert row["not_checked"] == {}


SCRIPTED = [(suite, one) for suite in SUITES.values() for one in suite.scenarios]


@pytest.mark.parametrize(
    ("suite", "scenario"),
    SCRIPTED,
    ids=[f"{suite.name}-{s.name}-{s.guard}" for suite, s in SCRIPTED],
)
def test_every_scenario_s_spec_is_valid(suite, scenario):
    spec = of_suite(scenario.name, suite.lock, scenario, seed=1)
    assert (spec.guard, spec.ttl_ms, spec.concurrency) == (
        scenario.guard,
        scenario.ttl_ms,
        scenario.clients,
    )
    # An expected verdict can be observed only if its checker is selected.
    asked = {name for name, why in spec.checkers.items() if why is None}
    assert set(scenario.expected) <= asked


def test_a_scenario_that_its_lease_is_too_short_for_is_refused():
    entry = SUITES["redlock"].scenarios[0]
    short = replace(entry, options={**entry.options, "node_timeout_ms": entry.ttl_ms // 5})
    with pytest.raises(BadArguments, match="can use up the whole TTL"):
        of_suite("x", "redlock", short, seed=1)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"nemesis": ("pause", "kill"), "time_s": 7.5, "hold": "1ttl", "work": {"extend": 1}},
        {"lock": "chubby", "options": LOCKS["chubby"].read_options({}), "shared": 0.5},
        {"guard": "compare-and-set", "store": "postgres", "liveness_bound_s": 9.0},
        {"locks": 7, "until": ("store", "resource")},
    ],
)
def test_a_spec_that_was_stored_is_the_same_again(changed):
    spec = replace(GOOD, **changed)
    again = respec(json.loads(json.dumps(spec.to_json())))
    assert replace(again, store=spec.store) == spec
    assert again.stored_in == spec.stored_in


def test_a_run_of_an_older_version_works_as_shortly_as_it_did():
    row = GOOD.to_json()
    del row["hold"], row["think"], row["contention"]
    short = {"hold": "0..20ms", "think": "0..20ms", "contention": "all"}
    assert respec(row) == replace(GOOD, store="redis", **short)
    work = {"think_ms": 900, "pause_ms": 0, "extend": 0.5}
    told = {"hold": "0..900ms", "think": "0", "contention": "all", "work": {"extend": 0.5}}
    assert respec(row | {"work": work}) == replace(GOOD, store="redis", **told)


def test_lengths_in_ttls_are_those_of_the_test_s_ttl():
    spec = replace(GOOD, ttl_ms=500, hold="0.5ttl..3s", think="ttl", contention="2..all")
    assert work_of(spec) == {"hold_ms": (250, 3000), "think_ms": (500, 500), "contention": (2, 5)}


def test_a_run_of_an_older_version_that_any_violation_stopped_is_read_as_such():
    row = GOOD.to_json()
    del row["until"], row["locks"]
    assert respec(row) == replace(GOOD, store="redis")
    assert respec(row | {"until_violation": True}).until == ("any",)
    assert respec(row | {"until_violation": False}).until == ()


def test_one_lock_keeps_its_name_and_several_have_a_resource_each():
    assert GOOD.locked == [("orders", "account")]
    assert replace(GOOD, locks=2).locked == [("orders-1", "account-1"), ("orders-2", "account-2")]


def test_a_run_of_an_older_version_that_does_not_say_how_grants_end_can_be_run_again():
    row = replace(GOOD, lock="etcd", options=LOCKS["etcd"].read_options({})).to_json()
    assert row["lock"]["ends_with"] == "close"
    del row["lock"]["ends_with"]
    assert respec(row).to_json()["lock"]["ends_with"] == "close"


def test_a_file_that_is_no_stored_spec_is_refused():
    scenario = SUITES["redlock"].scenarios[0]
    with pytest.raises(BadArguments, match="run its suite again"):
        respec(of_suite("x", "redlock", scenario, 1).to_json())
    with pytest.raises(BadArguments, match="does not describe a test"):
        respec({"name": "x"})


PYTHON = UserLock(Servers("etcd", 3), "lease", {}, python="mine.py:Lock")
PROGRAM = UserLock(Servers("redis", 1), "lease", {}, program=("./mine",))
ON = {"aim": True, "nemesis": ("pause",)}


@pytest.mark.parametrize(
    ("lock", "own", "asked", "counted"),
    [
        ("redis", None, ON, True),
        ("redis-py", None, ON, True),
        ("redis", None, {"nemesis": ("pause",)}, False),
        ("redis", None, {"nemesis": ("pause:client/before-release",)}, True),
        ("redis", None, {"aim": True, "nemesis": ("clock",)}, False),
        ("redis", None, {"scheduled": True}, True),
        ("etcd", None, ON, False),
        ("node-redlock", None, ON, False),
        ("mine.py:Lock", PYTHON, ON, True),
        ("mine.py:Lock", PYTHON, {"nemesis": ("cancel",)}, True),
        ("mine.py:Lock", PYTHON, {"nemesis": ("kill",)}, False),
        ("mine", PROGRAM, ON, False),
    ],
)
def test_requests_are_counted_for_faults_that_wait_for_them(lock, own, asked, counted):
    options = {} if own else LOCKS[lock].read_options({})
    spec = Spec(name="x", lock=lock, options=options, own=own, **asked)
    assert counts_requests(spec) is counted
    assert bool(layout_of(spec).failpoints) is counted


def test_a_lock_without_extend_has_no_failpoint_before_one():
    for name in ("redlock", "redlock-py"):
        spec = Spec(name="x", lock=name, options=LOCKS[name].read_options({}), **ON)
        at = layout_of(spec)
        assert ("before-extend" in at.failpoints) is LOCKS[name].extends


def test_a_lock_with_failpoints_of_its_own_keeps_them():
    name = "broken-check-then-delete"
    spec = Spec(name="x", lock=name, options=LOCKS[name].read_options({}), **ON)
    assert layout_of(spec).failpoints == ("between-check-and-delete",)
