"""A run that stops at the first violation: what is seen while it goes on, and what is not."""

from __future__ import annotations

import json
import time

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.errors import BadArguments
from fencepost.harness.run import early_stop
from fencepost.harness.run.early_stop import EarlyStop, check_until, first_violation, stopping

TEST = {"checkers": ["lease_exclusion", "mutual_exclusion", "liveness"], "until": ["any"]}


@pytest.fixture
def history(tmp_path, monkeypatch):
    monkeypatch.setattr(early_stop, "_EVERY_S", 0.01)
    path = tmp_path / "history.jsonl"
    path.touch()
    return path


def grant(process, time_ns, index):
    value = {"lock": "l", "ttl": 10**9}
    done = value | {"token": None, "deadline": time_ns + 10**9, "hold": f"{process}-1"}
    return [
        row(index, time_ns - 10, process, "invoke", value),
        row(index + 1, time_ns, process, "ok", done),
    ]


def row(index, time_ns, process, type, value):
    return json.dumps(
        {"index": index, "time": time_ns, "process": process, "type": type, "f": "acquire",
         "value": value, "node": f"client-{process}"}
    ) + "\n"  # fmt: skip


def wait(condition):
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def test_two_holders_are_seen_while_the_history_grows(history):
    with EarlyStop(history, TEST) as seen, history.open("a") as file:
        file.writelines(grant(0, 1000, 0))
        file.flush()
        time.sleep(0.05)
        assert not seen.seen
        file.writelines(grant(1, 2000, 2))
        file.flush()
        assert wait(lambda: seen.seen) == "lease_exclusion"


def test_what_an_op_that_comes_late_puts_right_is_no_violation(history, monkeypatch):
    """A look that finds it, and a next one that does not."""
    looks = [{"lease_exclusion"}, set(), {"mutual_exclusion"}, set()]
    done = []
    monkeypatch.setattr(
        EarlyStop, "_look", lambda self: looks.pop(0) if looks else done.append(1) or set()
    )
    with EarlyStop(history, TEST) as seen:
        assert wait(lambda: len(done) > 1)
    assert not seen.seen


def test_what_is_about_a_run_s_end_is_not_asked_of_one_that_goes_on(history):
    history.write_text("".join(grant(0, 1000, 0)))
    assert EarlyStop(history, TEST | {"checkers": ["liveness"]})._look() == set()


def test_a_violation_that_another_checker_finds_stops_nothing(history):
    """Two holders break both promises, and only the one that was named is looked at."""
    history.write_text("".join([*grant(0, 1000, 0), *grant(1, 2000, 2)]))
    assert EarlyStop(history, TEST)._look() == {"lease_exclusion", "mutual_exclusion"}
    assert EarlyStop(history, TEST | {"until": ["mutual_exclusion"]})._look() == {
        "mutual_exclusion"
    }
    assert EarlyStop(history, TEST | {"until": []})._look() == set()


@pytest.mark.parametrize(
    ("stored", "names"),
    [
        ({}, []),
        ({"until": []}, []),
        ({"until": ["any"]}, ["lease_exclusion", "mutual_exclusion"]),
        ({"until": ["mutual_exclusion"]}, ["mutual_exclusion"]),
        # As older versions stored it.
        ({"until_violation": True}, ["lease_exclusion", "mutual_exclusion"]),
        ({"until_violation": False}, []),
    ],
)
def test_the_checkers_that_stop_a_run_are_those_its_description_names(stored, names):
    assert stopping({"checkers": TEST["checkers"]} | stored) == names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("owner", "until owner: there is no such checker; choose from: resource, any"),
        ("run", "until run: there is no such checker; choose from: resource, any"),
        ("fencing", "until fencing: this test does not run it (no token); choose from: resource,"),
        ("liveness", "until liveness: it is judged only once the run is over; choose from: res"),
        ("faults", "until faults: it is judged only once the run is over; choose from: resource"),
    ],
)
def test_a_checker_that_cannot_stop_a_run_is_refused_with_the_reason(name, message):
    checkers = {"resource": None, "fencing": "no token", "liveness": None}
    check_until(("resource", "any"), checkers)
    with pytest.raises(BadArguments) as error:
        check_until(("resource", name), checkers)
    assert str(error.value).startswith(message)


def test_the_first_violation_is_the_earliest_evidence_of_any_checker_that_said_no():
    verdicts = {
        "fencing": Verdict(False, "", [{"what": "late", "time_ns": 3_000_000_000}]),
        "lease_exclusion": Verdict(
            False, "", [{"what": "b", "time_ns": 2_000_000_000}, {"what": "x"}]
        ),
        "faults": Verdict("unknown", "", [{"what": "no receipt", "time_ns": 1}]),
    }
    assert first_violation(verdicts) == {"time_s": 2.0, "checker": "lease_exclusion", "what": "b"}
    assert first_violation({"resource": Verdict(True, "")}) is None
