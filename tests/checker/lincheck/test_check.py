"""A check follows its options: the model, the partition and the engine."""

from fencepost.checker.lincheck import check, named
from fencepost.checker.lincheck.budget import UNLIMITED
from fencepost.checker.lincheck.verdict import check_numbered


def op(process, f, value=None, result=None):
    return [
        {"process": process, "type": "invoke", "f": f, "value": value},
        {"process": process, "type": "ok", "f": f, "value": value if result is None else result},
    ]


def test_a_model_given_by_name_reads_failed_releases_as_the_option_says():
    failed = {"process": 0, "type": "fail", "f": "release", "value": None}
    events = [*op(0, "acquire"), op(0, "release")[0], failed, *op(1, "acquire")]
    assert check(events, "mutex").valid is False
    assert check(events, "mutex", failed_release="ended").valid is True


def test_a_history_is_taken_as_one_object_only_where_that_is_asked_for():
    events = [*op(0, "put", ["a", "x"]), *op(0, "put", ["b", "y"])]
    assert set(check(events, "kv").parts) == {"a", "b"}
    assert set(check(events, "kv", partition=False).parts) == {None}


def test_the_general_engine_decides_only_where_no_fast_path_does_or_on_request():
    events = [*op(0, "write", 1), *op(0, "read", None, 7)]
    assert check(events, "register").failed is None  # a fast path answers false for the whole
    assert check_numbered(enumerate(events, 1), named("register"), UNLIMITED).failed is None
    assert check(events, "register", fast=False).failed.line == 3
    assert check(events, "register", partition=False).failed.line == 3


def test_objects_that_are_decided_at_once_start_no_processes(monkeypatch):
    started = []
    monkeypatch.setattr(
        "fencepost.checker.lincheck.verdict.in_processes", lambda *given: started.append(given)
    )
    monkeypatch.setattr("fencepost.checker.lincheck.verdict.SPREAD_AFTER_S", 60.0)
    assert check([*op(0, "put", ["a", "x"]), *op(0, "put", ["b", "y"])], "kv").valid is True
    assert started == []


def test_the_op_that_a_fast_path_names_is_the_one_that_failed():
    verdict = check([*op(0, "acquire"), *op(1, "acquire")], "owner-mutex")
    assert (verdict.failed.line, verdict.near) == (3, None)


def test_a_limit_reached_while_reading_leaves_no_objects():
    verdict = check(op(0, "write", 1), "register", time_limit=-1.0)
    assert (verdict.valid, verdict.operations, verdict.parts) == ("unknown", 0, {})
    assert verdict.reason == "time limit of -1 s reached after reading 0 events"
