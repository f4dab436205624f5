"""A message that is held back until its client asks again."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checker.history.history import NEMESIS
from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.sim.schedule import EACH, HEAD, Aim, Schedule
from fencepost.hunt.work import MORE

LOCKS = Path(__file__).parents[1] / "locks.py"
AGAIN = tuple(int(place == MORE) for place in range(EACH))


class Seen:
    """Notes when each command was handled."""

    def __init__(self):
        self.at = []

    def handled(self, link, command, reply):
        self.at.append((link.network.world.now, link.client.name, command[0], reply))

    def lost(self, link, command):
        pass

    refused = lost


def asked(name="Right"):
    return described(f"{LOCKS}:{name}", {}, {"seed": 1}, servers="redis:1", faults="delay").setting


def held_back(f, after, head=()):
    """Hold the first message back that is due this many steps after client-1 begins an op."""
    setting, seen = asked(), Seen()
    actions = table(setting)
    until_again = 2  # of the table's first actions (hunt/faults/delay.py)
    aims = [Aim(0, f, 0, after, until_again)]
    return Run(setting, Schedule(head), actions, seen, aims).execute(), seen


def faults(run):
    return [row for row in run.rows if row[1] == NEMESIS and row[2] == "invoke"]


def test_it_arrives_as_the_client_begins_the_same_op_again():
    run, _ = held_back("acquire", 1, (0,) * HEAD + AGAIN)
    begin, end = faults(run)
    assert "until client-1 begins the next acquire" in begin[4]["arguments"]["words"]
    begun = [row[0] for row in run.rows if row[1:4] == (0, "invoke", "acquire")]
    later = [row[0] for row in run.rows if row[1] != 0 and row[2:4] == ("invoke", "acquire")]
    assert end[0] in (*begun[1:], *later)


def test_it_arrives_at_last_if_the_client_does_not_ask_again():
    run, seen = held_back("release", 1)
    _, end = faults(run)
    assert end[0] >= run.worked_ns
    assert any(name == "client-1" and at >= end[0] for at, name, _, _ in seen.at) or run.came_back


def test_only_user_locks_have_it(setting):
    usual = len(table(setting("redis", "delay")))
    assert len(table(asked())) == usual + 1


@pytest.mark.parametrize("f", ["acquire", "release"])
def test_it_is_one_message_of_that_client(f):
    run, _ = held_back(f, 1, (0,) * HEAD + AGAIN)
    begin = faults(run)[0]
    assert set(begin[4]["targets"]) == {"client-1", "redis-1"}
