"""What a hunt finds in a simulation, real servers do as well: its schedule, played on them."""

from __future__ import annotations

import pytest

from fencepost.harness.run import scripted, written
from fencepost.harness.run.confirming import confirm
from fencepost.harness.run.hunting import setting_of
from fencepost.harness.run.run import run
from fencepost.hunt.bridge import bridge
from fencepost.hunt.hunt import hunt


@pytest.mark.parametrize(
    ("lock", "faults", "until", "seed"),
    [
        # Kleppmann's: a clock jumps while one client is in the middle of its op (C1).
        ("redlock", "clock,partition", "lease_exclusion", 5),
        # A release that is paused between its check and its delete (C14).
        ("broken-check-then-delete", "pause", "ownership", 2),
    ],
)
def test_real_servers_do_what_the_simulation_did(cluster, results, lock, faults, until, seed):
    spec = written.spec(lock, {}, {"concurrency": 2, "seed": seed})
    setting = setting_of(spec, faults, until, guarded=False)
    _, find = hunt(setting, seed, 60, 1)
    assert find is not None
    made = bridge(setting, find)

    def play(number):
        played = scripted.of_hunt(spec, made.scenario, seed + number)
        return run(played, cluster, lambda status: None, made.scenario)

    found = confirm(made, play, print)
    assert found.confirmed, found.sentence
