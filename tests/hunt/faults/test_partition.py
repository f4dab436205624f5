"""A cluster that splits in two: each client reaches the servers of its side, and no others."""

from __future__ import annotations

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.partition import SPLIT
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.sim.schedule import Schedule


@pytest.fixture
def setting(tmp_path):
    (tmp_path / "lock.sh").write_text("")
    hunt = described(
        "", {}, {"seed": 1}, servers="redis:3", program="sh lock.sh", ship=tmp_path, clients=3
    )
    return hunt.setting


def test_each_client_reaches_the_servers_of_its_side_only(setting):
    splits = [one for one in table(setting) if one.way == SPLIT]
    reached = []
    for split in splits:
        run = Run(setting, Schedule(), [])
        split.inject(run, None)
        cut = run.network.requests_cut
        assert cut == run.network.replies_cut
        reached.append(
            [
                {server.index for server in run.servers if (client.index, server.index) not in cut}
                for client in run.clients
            ]
        )
    majorities = [{0, 1}, {0, 2}, {1, 2}]
    minorities = [{0}, {1}, {2}]
    for (first, *others), side in zip(reached, majorities + minorities, strict=True):
        assert first == side and all(other == {0, 1, 2} - side for other in others)


def test_a_split_names_the_links_that_it_cuts_and_heals(setting):
    run = Run(setting, Schedule(), [])
    split = next(one for one in table(setting) if one.way == SPLIT)
    split.inject(run, None)
    value = run.rows[0][4]
    assert sorted(value["links"]) == sorted(
        [["client-1", "redis-3"]]
        + [[client, server] for client in ("client-2", "client-3")
           for server in ("redis-1", "redis-2")]
    )  # fmt: skip
    run.faults.heal()
    assert not run.network.requests_cut and not run.network.replies_cut
