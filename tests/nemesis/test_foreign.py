"""The faults that external servers can have, and which can be active together."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis import clock, kill, schedule
from fencepost.nemesis.families import FAMILIES, possible
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import Layout

SERVERS, CLIENTS = ["a", "b", "c"], ["client-1", "client-2"]
SHOWN = dict.fromkeys(SERVERS, ("wall",)) | dict.fromkeys(CLIENTS, ("wall",))
FOREIGN = Layout(SERVERS, CLIENTS, 2.0, 0.0, kind=KINDS["redis"], shown=SHOWN, foreign=True)


def test_a_fault_that_needs_bundled_servers_is_refused_with_its_reason():
    found = possible(FOREIGN)
    can = [family for family, why in found.items() if not why]
    assert can == [name for name, family in FAMILIES.items() if not family.ours_alone]
    assert found["power"] == "it needs fencepost's own disk under the server's data"
    assert all(not why or FAMILIES[family].ours_alone == why for family, why in found.items())


def test_a_server_that_shows_no_clock_cannot_be_skewed():
    found = possible(replace(FOREIGN, shown=SHOWN | dict.fromkeys(SERVERS, ())))
    assert "does not show its wall clock" in found["clock"]


def test_a_container_that_docker_removes_when_it_ends_cannot_be_killed():
    assert (
        "Docker removes the container" in possible(replace(FOREIGN, mortal=tuple(SERVERS)))["kill"]
    )


def test_only_clocks_that_are_shown_are_drawn():
    at = replace(FOREIGN, kind=KINDS["zookeeper"])
    for seed in range(50):
        (one,) = clock.draw(Random(seed), at, Asked("clock"))
        assert one.arguments["clocks"] == ["wall"]


def test_a_container_that_is_killed_has_no_cut_link_meanwhile():
    """It removes its network when it ends, and every rule in there."""
    entries = ("partition", "kill:one", "delay")
    for seed in range(20):
        faults = schedule.draw(entries, seed, 60, 2, FOREIGN)
        killed = [one for one in faults if one.family == "kill"]
        assert killed
        for one in killed:
            for other in faults:
                cut = {node for link in FAMILIES[other.family].links(other.targets, other.arguments)
                       for node in link}  # fmt: skip
                apart = other.at_s >= one.at_s + one.duration_s or (
                    one.at_s >= other.at_s + other.duration_s
                )
                assert apart or cut.isdisjoint(one.targets)


def test_a_bundled_server_may_be_killed_while_it_is_cut_off():
    strike = kill.FAMILY.strike(["a"], {}, FOREIGN)
    cut = FAMILIES["partition"].strike(["a", "b"], {"links": [["a", "b"]]}, FOREIGN)
    assert kill.clashes(strike, cut, FOREIGN)
    assert not kill.clashes(strike, cut, replace(FOREIGN, foreign=False))
