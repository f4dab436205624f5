"""A run of real clients becomes a scenario for real servers, whose clients stop at messages."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencepost.harness.clients.client_program import command
from fencepost.harness.execute import scripted
from fencepost.harness.hunting.hunts import described
from fencepost.harness.hunting.programs import conductor
from fencepost.hunt.bridge.bridge import bridge
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.conductor import Job
from fencepost.hunt.live.trace import RealTrace
from fencepost.hunt.live.witness import Witness, of_run
from fencepost.hunt.sim.schedule import Schedule
from fencepost.strictjson import decode
from fencepost.workloads.client.gate import REPLY, WAITS, number
from fencepost.workloads.client.steps import before, connected
from fencepost.workloads.scenarios import file
from fencepost.workloads.scenarios.scenario import Begin, Do, Inject, Reach, plain

SDK = Path(__file__).parents[3] / "sdk"
LOCK = Path(__file__).parent / "programs" / "lock.py"
SET = number(0, 0, 2)
"""The first request of an acquire: one server, and the storage."""


@pytest.fixture
def made(tmp_path):
    """Play one injection, of the action that `chosen` accepts, at a message of client-1, and return
    the hunt, the bridge and its steps."""
    shutil.copy(SDK / "python" / "fencepost_sdk.py", tmp_path)
    shutil.copy(LOCK, tmp_path)

    def make(faults, message, chosen=lambda action: True, command="", several=1):
        shutil.copy(SDK / "javascript" / "fencepost.js", tmp_path)
        shutil.copy(LOCK.parent / "quorum.js", tmp_path)
        program = command or f"{sys.executable} lock.py none"
        hunt = described(
            "", {}, {"seed": 1, "ttl": "300ms"}, servers="redis:3" if command else "redis:1",
            program=program, ship=tmp_path, faults=faults,
        )  # fmt: skip
        actions = table(hunt.setting)
        action = next(n for n, one in enumerate(actions, 1) if chosen(one))
        places = range(message, message + several)
        schedule = Schedule((), tuple((1 + 2 * place, action) for place in places))
        with conductor(hunt.spec, hunt.setting, 1) as played:
            (run,) = played.play([Job(schedule, (), Witness(hunt.setting))])
        assert run.injected == list(schedule.injections)
        end = SimpleNamespace(time_ns=run.healed_ns, words="")
        find = SimpleNamespace(
            run=run, schedule=schedule, broken={"lease_exclusion": None}, story=[end]
        )
        found = bridge(hunt.setting, find, of_run(run))
        return hunt, found, [plain(step) for step in found.scenario.steps]

    return make


def of_client_1(action):
    return action.client == 0


def faults_in(steps):
    return [one for one in steps if isinstance(one, Inject) and not one.name.startswith("hold-")]


@pytest.mark.parametrize(("message", "place"), [(0, WAITS), (1, REPLY)])
def test_a_pause_at_a_message_stops_the_client_there(made, message, place):
    _, _, steps = made("pause:client", message, of_client_1)
    point = before(SET + place)
    begun = next(one for one in steps if isinstance(one, Begin))
    assert (begun.client, begun.f, begun.stops) == ("client-1", "acquire", (point,))
    (fault,) = faults_in(steps)
    assert fault.family == "pause" and fault.targets == ("client-1",)
    assert fault.arguments["point"] == point
    reached = next(one for one in steps if isinstance(one, Reach))
    assert steps.index(begun) < steps.index(reached) < steps.index(fault)


def test_a_kill_at_a_message_kills_the_client_there(made):
    _, _, steps = made("kill:client", 0, of_client_1)
    (fault,) = faults_in(steps)
    assert fault.family == "kill" and fault.arguments["point"] == before(SET + WAITS)
    assert not [
        one for one in steps[steps.index(fault) :] if getattr(one, "client", "") == "client-1"
    ]


@pytest.mark.parametrize(
    ("message", "ends"), [(0, ("client-1", "redis-1")), (1, ("redis-1", "client-1"))]
)
def test_a_lost_message_is_lost_on_its_connection(made, message, ends):
    hunt, found, steps = made("packet/loss", message)
    begun = next(one for one in steps if isinstance(one, Begin))
    assert begun.stops == (connected(SET),)
    (fault,) = faults_in(steps)
    assert fault.family == "delay" and fault.arguments["lost"] and fault.arguments["connection"]
    assert (fault.arguments["source"], fault.arguments["to"]) == ends
    # It is valid as a test, and as a file.
    assert scripted.of_hunt(hunt.spec, found.scenario, 1).scenario["counted"]
    text = file.to_text(found.scenario, found.notes, found.cannot)
    assert file.read(decode(text.encode()))[0].steps == found.scenario.steps


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
@pytest.mark.parametrize("faults", ["delay", "packet/loss"])
def test_requests_to_several_servers_that_are_sent_at_once_are_all_reached(made, faults):
    _, _, steps = made(faults, 0, command="node quorum.js grants-late", several=2)
    begun = next(one for one in steps if isinstance(one, Begin))
    points = tuple(connected(number(0, server, 4)) for server in (0, 1))
    assert begun.stops == points
    reached = [one.point for one in steps if isinstance(one, Reach) and one.point in points]
    assert tuple(reached) == points
    first, second = faults_in(steps)[:2]
    assert {*first.targets, *second.targets} == {"client-1", "redis-1", "redis-2"}
    for point, fault in zip(points, (first, second), strict=True):
        reach = next(
            n for n, one in enumerate(steps) if isinstance(one, Reach) and one.point == point
        )
        assert reach < steps.index(fault)


def test_the_ops_of_all_clients_are_played(made):
    _, found, steps = made("pause:client", 0, of_client_1)
    ops = {(one.client, one.f) for one in steps if isinstance(one, Do | Begin)}
    assert {("client-1", "acquire"), ("client-2", "acquire")} <= ops
    assert not found.cannot


def test_a_program_is_gated_only_for_a_scenario_with_steps(made):
    hunt, _, _ = made("pause:client", 0, of_client_1)
    lock = hunt.spec.lock_type
    words = command(lock, gated=True)
    assert words.index("fencepost.workloads.client.gate") < words.index("launch")
    assert "fencepost.workloads.client.gate" not in command(lock)


def test_an_op_begins_before_its_first_message_even_if_its_line_is_read_later(made):
    hunt, _, _ = made("pause:client", 0, of_client_1)
    trace = RealTrace(hunt.setting)
    rows = [(5, 1, "invoke", "acquire", {}, None, "client-2", 0)]
    trace.begin(rows, [SimpleNamespace(ops=1, asks="acquire")] * 2)
    world = SimpleNamespace(now=7)
    link = SimpleNamespace(
        client=SimpleNamespace(name="client-1", index=0), network=SimpleNamespace(world=world),
        server=SimpleNamespace(name="redis-1"),
    )  # fmt: skip
    trace.sends(link, ("SET", "a"))
    rows.append((7, 0, "invoke", "acquire", {}, None, "client-1", 0))
    trace.ends()
    assert [moment.rows for moment in trace.moments] == [2, 2, 2]
