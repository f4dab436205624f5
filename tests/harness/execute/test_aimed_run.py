"""Whole runs with an aim, on a cluster in memory: their faults are stored and replayed."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencepost import runfiles
from fencepost.checker.history import history
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute import timed
from fencepost.harness.results import results
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.validation import validate
from fencepost.nemesis import targets
from fencepost.nemesis.failpoints import POINT_S, REQUESTS
from fencepost.report.words.settings import again
from tests.harness.disturbed import SPEC, assert_judged_and_put_away, carried_out

pytestmark = pytest.mark.slow

AIMED = validate(
    replace(SPEC, aim=True, nemesis=("pause",), time_s=8.0, hold="0.5ttl..1.4ttl", ttl_ms=400)
)


def told(ended):
    return results.read_test(ended.folder)


def test_a_run_with_an_aim_stores_its_triggered_faults_in_order(cluster):
    ended = carried_out(cluster, AIMED, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert ended.error is None and ended.results["run_notes"] == []
    test = told(ended)
    struck = [play for play in test["plays"] if play["at_s"] is not None]
    assert struck
    ops = [op for op in history.read(ended.folder / "history.jsonl") if op.process == "nemesis"]
    begun = [op for op in ops if op.type == "invoke" and op.value["phase"] == "start"]
    assert [op.value["targets"] for op in begun] == [one["targets"] for one in test["schedule"]]
    for op, fault in zip(begun, test["schedule"], strict=True):
        # It may have to wait for a failpoint, and without a client there for a holder.
        assert -0.001 <= op.time / 1e9 - fault["at_s"] < 2 + POINT_S + targets._WAIT_S
    assert "--replay" in (again(test, ended.folder) or "")
    # The request says nothing of what the seed's moments led to.
    asked = runfiles.test(ended.folder / "test.json")
    assert asked == json.loads(json.dumps(AIMED.to_json() | {"schedule": []}))
    as_a_file, schedule = from_arguments.scheduled(
        replace(AIMED, aim=False, nemesis=(), time_s=60.0), ended.folder / "test.json"
    )
    assert as_a_file.nemesis == ("pause",)
    assert [fault.to_json() for fault in schedule or ()] == test["schedule"]


def test_a_replay_injects_the_triggered_faults_of_the_run(cluster):
    ended = carried_out(cluster, AIMED, schedule=[])
    spec, schedule = from_arguments.replayed(str(ended.folder), "", {}, ())
    plays = told(ended)["plays"]
    assert schedule is None
    assert [play.to_json() for play in spec.plays] == plays
    repeat = carried_out(cluster, spec, schedule=None)
    assert_judged_and_put_away(repeat, cluster)
    repeated = told(repeat)["plays"]
    strikes = [[play["kind"], play["strike"]] for play in repeated]
    assert strikes == [[play["kind"], play["strike"]] for play in plays][: len(strikes)]
    assert any(play["at_s"] is not None for play in repeated)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"strike": [{"family": "pause", "targets": ["redis-9"], "arguments": {}}]},
        {"strike": [{"family": "none", "targets": ["redis-1"], "arguments": {}}]},
        {"strike": [{"family": "kill", "targets": ["redis-1"], "arguments": {"data": "x"}}]},
        {"share": "much"},
        {"kind": "hold", "unknown": "field"},
    ],
)
def test_invalid_triggered_faults_of_another_source_are_refused(tmp_path, spoilt):
    play = {
        "kind": "hold",
        "before": [],
        "strike": [{"family": "pause", "targets": ["holder"], "arguments": {}}],
        "share": 0.5,
        "lasts_s": 1.0,
        "until_grant": True,
        "rest_s": 0.1,
    }
    test = AIMED.to_json() | {"plays": [play], "schedule": []}
    (tmp_path / "test.json").write_text(json.dumps(test))
    assert len(from_arguments.replayed(str(tmp_path), "", {}, ())[0].plays) == 1
    (tmp_path / "test.json").write_text(json.dumps(test | {"plays": [play | spoilt]}))
    with pytest.raises(BadArguments):
        from_arguments.replayed(str(tmp_path), "", {}, ())


@pytest.mark.parametrize(("extends", "left"), [((False, True), 6), ((False, False), 4)])
def test_failpoints_of_an_extend_are_left_out_where_no_client_s_lock_has_that_verb(
    monkeypatch, extends, left
):
    at = targets.Layout([], [*"ab"], 1.0, 1.0, failpoints=REQUESTS)
    monkeypatch.setattr(timed, "layout_of", lambda spec, lacks: replace(at, lacks=frozenset(lacks)))
    clients = {f"client-{n}": SimpleNamespace(extends=one) for n, one in enumerate(extends)}
    site = SimpleNamespace(clients=clients, client=clients.get)
    running = SimpleNamespace(spec=None, site=site, lacks={"packet/delay": ["a"]})
    assert len(timed._reached(running).failpoints) == left
    assert timed._reached(running).lacks == {"packet/delay"}
