"""Real servers reproduce a simulated counterexample from its schedule."""

from __future__ import annotations

import pytest

from fencepost.harness.execute import scripted
from fencepost.harness.execute.run import run
from fencepost.harness.hunting.confirm import confirm
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.simulation import setting_of
from fencepost.hunt.bridge.bridge import bridge
from fencepost.hunt.search.hunt import hunt

PACKAGED = {"redis-py"}


@pytest.mark.parametrize(
    ("lock", "faults", "until", "seed"),
    [
        # Kleppmann's: a clock jumps while one client is in the middle of its op (C1).
        ("redlock", "clock,partition", "lease_exclusion", 5),
        # A release that is paused between its check and its delete (C14).
        ("broken-check-then-delete", "pause", "ownership", 2),
        # A library's own connection: the reply to its SET is lost, and it retries.
        ("redis-py", "packet", "liveness", 1),
    ],
)
def test_real_servers_reproduce_the_simulation(cluster, results, lock, faults, until, seed):
    spec = from_arguments.spec(lock, {}, {"concurrency": 2, "seed": seed})
    setting = setting_of(spec, faults, until, guarded=False)
    _, find = hunt(setting, seed, 60, 1)
    assert find is not None
    made = bridge(setting, find)

    def play(number):
        played = scripted.of_hunt(spec, made.scenario, seed + number)
        return run(played, cluster, lambda status: None, made.scenario)

    found = confirm(made, play, print)
    assert found.confirmed, found.sentence
