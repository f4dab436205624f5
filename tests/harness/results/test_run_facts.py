"""run.json grows at known points, as a whole file each time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.harness.execute import timed
from fencepost.harness.results import results
from fencepost.harness.results.run_facts import learn
from tests.harness.disturbed import PAUSES, SPEC, carried_out


def test_facts_are_added_to_those_that_are_known_and_replace_them(tmp_path):
    learn(tmp_path, started="now", versions={"redis": "7"})
    learn(tmp_path, versions={"redis": "7.2"}, ready_s=1.5)
    known = {"started": "now", "versions": {"redis": "7.2"}, "ready_s": 1.5}
    assert json.loads((tmp_path / "run.json").read_text()) == known


def test_a_run_json_that_cannot_be_used_is_not_replaced(tmp_path):
    (tmp_path / "run.json").write_text("[")
    with pytest.raises(ValueError):
        learn(tmp_path, ready_s=1.5)
    assert (tmp_path / "run.json").read_text() == "["


@pytest.fixture
def written(monkeypatch) -> list[str]:
    """The names of the files that are written, in order."""
    names: list[str] = []
    replacing = results.replace

    def spy(path: Path, pieces) -> None:
        names.append(path.name)
        replacing(path, pieces)

    monkeypatch.setattr(results, "replace", spy)
    return names


def test_test_json_is_written_once_before_all_else_and_has_the_request(cluster, written):
    ended = carried_out(cluster)
    begun, servers_up, clients_ready = ["run.json"] * 3
    assert written == ["test.json", begun, servers_up, clients_ready, "results.json"]
    asked = SPEC.to_json() | {"schedule": [fault.to_json() for fault in PAUSES]}
    assert json.loads((ended.folder / "test.json").read_text()) == json.loads(json.dumps(asked))


def test_run_json_has_what_was_learnt(cluster):
    ended = carried_out(cluster)
    learnt = json.loads((ended.folder / "run.json").read_text())
    assert list(learnt) == ["started", "versions", "began_unix_s", "ready_s"]
    assert (
        learnt["versions"] | {"cluster": "in memory", "redis": "in memory 1.0"}
        == (learnt["versions"])
    )


def test_a_run_that_is_in_progress_has_what_its_checkers_need(cluster, monkeypatch):
    seen = {}
    inject = timed._inject

    def look(running, schedule):
        seen.update(results.read_test(running.recorder.path.parent))
        return inject(running, schedule)

    monkeypatch.setattr(timed, "_inject", look)
    ended = carried_out(cluster)
    assert seen == results.read_test(ended.folder)
    assert seen["ready_s"] > 0


def test_a_run_whose_clients_do_not_come_up_has_the_versions_of_its_servers(cluster, monkeypatch):
    def crash(*_: object) -> None:
        raise RuntimeError("they do not come up")

    monkeypatch.setattr("fencepost.harness.execute.client_fleet.ClientFleet.start", crash)
    ended = carried_out(cluster)
    learnt = json.loads((ended.folder / "run.json").read_text())
    assert learnt["versions"]["redis"] == "in memory 1.0"
    assert "ready_s" not in learnt
