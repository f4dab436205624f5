"""An imported run is repeated only within limits, and writes to the results folder alone."""

from __future__ import annotations

import json
import os

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.results import results
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.spec import Spec
from fencepost.workloads.locks.registry import LOCKS

GOOD = Spec("redis", "redis", LOCKS["redis"].read_options({}), time_s=5.0).to_json()


@pytest.fixture
def replayed(tmp_path, monkeypatch):
    """Read a run whose test.json is valid except for these fields."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))

    def read(**changed):
        folder = tmp_path / "elsewhere"
        folder.mkdir(exist_ok=True)
        text = json.dumps(GOOD | {"schedule": []} | changed)
        (folder / "test.json").write_text(text)
        return from_arguments.replayed(str(folder), "", {}, ())

    return read


def test_a_run_from_elsewhere_is_read_as_it_was_stored(replayed):
    spec, schedule = replayed()
    assert (spec.name, spec.time_s, schedule) == ("redis", 5.0, [])


NAMES = (
    "../../x", "/tmp/x", "a/b", "..", ".", ".hidden", "", "latest", "a\0b", "a\nb", "\ud800",
    "x" * 201, 7, None, ["redis"],
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_out_of_the_results_folder_is_refused(replayed, name):
    with pytest.raises(BadArguments):
        replayed(name=name)


@pytest.mark.parametrize("name", [name for name in NAMES if isinstance(name, str)])
def test_no_folder_is_created_outside_of_the_results_folder(tmp_path, replayed, name):
    with pytest.raises(BadArguments, match="a test cannot be called"):
        results.create(name)
    assert list(tmp_path.iterdir()) == []


def test_a_link_out_of_the_results_folder_is_not_followed(tmp_path, replayed):
    elsewhere = tmp_path / "precious"
    elsewhere.mkdir()
    results.root().mkdir()
    (results.root() / "redis").symlink_to(elsewhere)
    with pytest.raises(BadArguments, match="is a symbolic link out of the results folder"):
        results.create("redis")
    assert os.listdir(elsewhere) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 2**63},
        {"seed": 1.5},
        {"seed": "7; rm"},
        {"interval_s": 0},
        {"interval_s": -1},
        {"interval_s": 1e300},
        {"liveness_bound_s": -1},
        {"liveness_bound_s": 1e9},
        {"work": {"extend": -1}},
        {"work": {"extend": 2}},
        {"work": {"extend": "often"}},
        {"work": {"think_ms": 1}},
        {"hold": "1..2 weeks"},
        {"think": "2h"},
        {"contention": "0"},
        {"contention": 3},
        {"work": {"lock": "x"}},
        {"work": {"ttl_ns": 5}},
        {"until_violation": True, "until": ["no-such-checker"]},
        {"restart": "9999999h"},
        {"restart": "; reboot"},
        {"ttl_ms": 10**9},
        {"time_s": 10**9},
        {"locks": 10**9},
        {"concurrency": 10**9},
        {"lock": {"name": "redis", "options": {"retries": -1}}},
        {"lock": {"name": "redis", "options": {"retries": 10**12}}},
        {"lock": {"name": "redis", "options": {"retries": "many"}}},
        {"lock": {"name": "redis", "options": {"no-such": 1}}},
        {"lock": {"name": "redis", "options": {"retries": {"a": 1}}}},
        {"lock": {"name": "../redis", "options": {}}},
        {"server": {"redis": "../../bin/sh"}},
        {"nemesis": ["pause:redis-1; reboot"]},
        {"guard": "x"},
        {"store": "x"},
        {"persistence": "x"},
        {"failed_release": "x"},
        {"schedule": [{"at_s": 1, "duration_s": 1, "fault": "pause:$(reboot)"}]},
        {"schedule": {}},
    ],
)
def test_every_other_field_has_its_limits(replayed, changed):
    with pytest.raises(BadArguments):
        replayed(**changed)


@pytest.mark.parametrize("field", ["seed", "interval_s", "liveness_bound_s", "time_s", "shared"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_no_finite_number_is_refused(replayed, field, number):
    with pytest.raises(BadArguments):
        replayed(**{field: number})
