"""Long simulated histories: the same from one seed, with faults and calm, and killed clients."""

from __future__ import annotations

import msgspec
import pytest

from fencepost.checker.facts.faults import faults
from fencepost.harness.execute.timed import client_settings
from fencepost.harness.hunting.hunts import described
from fencepost.harness.spec.spec import layout_of
from fencepost.hunt.history.injections import Injector
from fencepost.hunt.history.long_run import LEASES, LongRun
from fencepost.hunt.history.play import injectors, play
from fencepost.hunt.sim.record import lines, to_history
from fencepost.workloads.client.critical_section import Settings

SECOND = 10**9

NO_EXTEND = """
import redis


class Lock:
    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=0.5)

    def acquire(self, name, ttl):
        return bool(self.client.set(name, "me", nx=True, px=int(ttl * 1000)))

    def release(self, name):
        return self.client.delete(name) == 1
"""


@pytest.fixture(scope="module")
def hunt():
    return described("redis", {}, {"seed": 1, "ttl": "1s"}, clients=3, faults="")


def injected(hunt, *entries):
    found, lacks = injectors(entries, hunt.setting, layout_of(hunt.spec))
    assert not lacks
    return found


def work(hunt):
    return msgspec.convert(client_settings(hunt.spec), Settings)


def run(hunt, *entries, seed="1"):
    return LongRun(hunt.setting, seed, injected(hunt, *entries), work(hunt)).execute()


def test_a_seed_gives_one_history_and_another_seed_another(hunt):
    one, same = run(hunt, "pause:client"), run(hunt, "pause:client")
    assert lines(one.rows) == lines(same.rows)
    assert lines(run(hunt, "pause:client", seed="2").rows) != lines(one.rows)


def test_each_client_has_many_sections_of_the_usual_work(hunt):
    made = run(hunt)
    assert made.world.now >= LEASES * SECOND
    history = to_history(made.rows)
    granted = [call for call in history.calls() if call.begin.f == "acquire" and call.type == "ok"]
    assert len(granted) > 100
    assert {op.f for op in history} >= {"acquire", "release", "read", "write", "extend", "lost"}


def test_faults_come_again_and_again_with_calm_between_and_all_are_healed(hunt):
    made = run(hunt, "partition:client", "pause:server", "clock:one")
    found = sorted(faults(to_history(made.rows)), key=lambda one: one.start)
    assert len(found) > 10
    assert {one.family for one in found} == {"partition", "pause", "clock"}
    assert all(one.healed for one in found)
    ends, calm = 0, 0
    for one in found:
        calm += one.start - ends > hunt.setting.bound_ns + hunt.setting.ttl_ns
        ends = max(ends, one.end)
    assert calm >= 3


def test_a_killed_client_returns_as_another_process(hunt):
    made = run(hunt, "kill:client")
    history = to_history(made.rows)
    killed = [one for one in faults(history) if one.family == "kill"]
    assert killed
    by_node = {}
    for op in history.clients():
        by_node.setdefault(op.node, set()).add(op.process)
    assert all(len(processes) > 1 for processes in by_node.values())


def test_a_client_is_paused_until_another_one_holds_the_lock(hunt):
    made = run(hunt, "pause:client/other-holds")
    history = to_history(made.rows)
    found = faults(history)
    assert found
    grants = [(op.time, op.node) for op in history if op.f == "acquire" and op.type == "ok"]
    others = [
        any(one.start < at <= one.end and node not in one.targets for at, node in grants)
        for one in found
    ]
    assert sum(others) > len(found) / 2


@pytest.mark.parametrize("entry", ["cancel", "cancel/acquired", "cancel:holder"])
def test_calls_are_cancelled_and_each_fault_is_one_of_them(hunt, entry):
    history = to_history(run(hunt, entry).rows)
    cancelled = [op for op in history if op.error and op.error[0] == "cancelled"]
    assert len(cancelled) == len(faults(history)) > 3


def test_a_sound_lock_is_accused_by_no_checker_of_the_service(hunt):
    injectors = injected(hunt, "pause:client", "kill:client", "cancel")
    verdicts = play(hunt.setting, "3", injectors, work(hunt))
    for name in ("lease_exclusion", "linearizable", "ownership", "liveness", "store"):
        assert verdicts[name].valid is True, verdicts[name].summary


def test_a_lock_that_cannot_be_extended_is_asked_for_no_extension(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(NO_EXTEND)
    made = described(
        f"{file}:Lock", {}, {"seed": 1, "ttl": "1s"}, servers="redis:1", clients=2, faults=""
    )
    history = to_history(run(made).rows)
    assert {"acquire", "release"} <= {op.f for op in history}
    assert "extend" not in {op.f for op in history}
    assert len({op.process for op in history}) == 2


def test_a_lock_that_deletes_any_key_is_refuted():
    made = described("broken-no-owner-check", {}, {"seed": 1}, clients=3, faults="")
    found = play(made.setting, "1", injected(made, "pause:client/other-holds"), work(made))
    assert found["ownership"].valid is False


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("cpu", "the simulated world has no cpu"),
        ("clock:client", "only your own lock reads the wall clock of a simulated client"),
        ("pause:client/renewal", "renewal"),
        ("partition:client/reject", "the simulated world has no partition/reject"),
        ("partition:primary", "none of its servers leads"),
        ("worm", "worm"),
    ],
)
def test_a_fault_that_the_simulated_world_lacks_is_named(hunt, entry, why):
    with pytest.raises(ValueError, match=why):
        Injector(entry, hunt.setting, layout_of(hunt.spec))
    assert injectors([entry], hunt.setting, layout_of(hunt.spec))[0] == []
