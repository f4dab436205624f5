"""A scenario from a file that stops a program at its messages, where that is possible."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.execute import scripted
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.workloads.scenarios.scenario import Begin, Do, Scenario

STOPS = Begin("client-1", "acquire", stops=("step-2",))
SCENARIO = Scenario("one", (), "", "", "none", (STOPS,), {"lease_exclusion": False}, clients=2)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "worker").write_text("#!/bin/sh\n")
    (tmp_path / "worker").chmod(0o755)


def spec(scenario=SCENARIO, servers="redis:1", image=""):
    asked = LockRequest(servers, program="./worker", ship=Path(), client_image=image)
    name, own = resolve("", asked)
    return scripted.spec(name, scenario, {}, own, "1")


def test_a_program_on_a_node_is_stopped_at_its_messages():
    assert spec().scenario["counted"]


def test_a_program_in_an_image_is_not_stopped_at_its_messages():
    with pytest.raises(BadArguments, match="not possible in an image: leave --client-image out"):
        spec(image="myapp:3")


def test_a_program_on_etcd_is_not_stopped_at_its_messages():
    with pytest.raises(BadArguments, match="programs on redis only, and worker runs on etcd"):
        spec(servers="etcd:3")


def test_a_scenario_without_such_stops_runs_in_an_image():
    asks = replace(SCENARIO, steps=(Do("client-1", "acquire"),))
    assert "counted" not in spec(asks, image="myapp:3").scenario
