"""Real servers reproduce a simulated counterexample from its schedule."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fencepost.harness.execute import scripted
from fencepost.harness.execute.run import run
from fencepost.harness.hunting.confirm import confirm
from fencepost.harness.hunting.hunts import described
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.simulation import setting_of
from fencepost.hunt.bridge.bridge import bridge
from fencepost.hunt.live.witness import of_run
from fencepost.hunt.search.hunt import hunt

ROOT = Path(__file__).parents[2]
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
    _, find = hunt(setting, seed, 600, 1)
    assert find is not None
    made = bridge(setting, find)

    def play(number):
        played = scripted.of_hunt(spec, made.scenario, seed + number)
        return run(played, cluster, lambda status: None, made.scenario)

    found = confirm(made, play, print)
    assert found.confirmed, found.sentence


def test_real_servers_reproduce_a_find_of_real_clients(cluster, results, tmp_path):
    """A program that deletes the lock's key without a look at its value (C14)."""
    for path in ("sdk/python/fencepost_sdk.py", "tests/hunt/live/programs/lock.py"):
        shutil.copy(ROOT / path, tmp_path)
    asked = described(
        "", {}, {"seed": 1, "ttl": "300ms"}, servers="redis:1", faults="pause", budget="120s",
        program="python3 lock.py no-owner-check", ship=tmp_path,
    )  # fmt: skip
    _, find = asked.carry_out(8)
    assert find is not None and "ownership" in find.broken
    made = bridge(asked.setting, find, of_run(find.run))

    def play(number):
        played = asked.test_of(made.scenario, number)
        return run(played, cluster, lambda status: None, made.scenario)

    found = confirm(made, play, print)
    assert found.confirmed, found.sentence
