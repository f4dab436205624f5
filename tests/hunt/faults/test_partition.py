"""A cluster that splits in two: each client reaches the servers of its side, and no others.
Outages of one client that end after its lease."""

from __future__ import annotations

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.partition import OUTAGE, SPLIT
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.sim.schedule import Schedule


@pytest.fixture
def of(tmp_path):
    """Return the setting of a hunt of a program on these servers."""
    (tmp_path / "lock.sh").write_text("")

    def made(servers):
        hunt = described(
            "", {}, {"seed": 1}, servers=servers, program="sh lock.sh", ship=tmp_path, clients=3
        )
        return hunt.setting

    return made


@pytest.fixture
def setting(of):
    return of("redis:3")


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


@pytest.mark.parametrize(("servers", "both"), [("zookeeper:3", False), ("etcd:3", True)])
def test_an_outage_cuts_one_client_off_and_ends_after_its_lease_by_itself(of, servers, both):
    setting = of(servers)
    outages = [one for one in table(setting) if one.way == OUTAGE]
    assert [one.client for one in outages] == [0, 1, 2]
    run = Run(setting, Schedule(), [])
    others = [event for _, _, event in run.world.queue]
    outages[1].inject(run, None)
    mine = {(run.clients[1].index, server.index) for server in run.servers}
    assert run.network.replies_cut == mine
    # ZooKeeper hears the client ask for its session, and keeps it.
    assert run.network.requests_cut == (mine if both else set())
    ((ends, _, end),) = (one for one in run.world.queue if one[2] not in others)
    assert setting.lease_ns * 5 // 3 < ends - run.world.now < setting.lease_ns * 2
    end.due()
    assert not run.network.replies_cut and not run.network.requests_cut


def test_no_other_servers_have_outages(of):
    for servers in ("redis:1", "redis:3", "postgres"):
        assert not any(one.way == OUTAGE for one in table(of(servers)))
