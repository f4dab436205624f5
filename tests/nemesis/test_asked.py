"""Parsing of `--nemesis`: valid requests, the schedules drawn for them, and errors."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis.families import FAMILIES, check
from fencepost.nemesis.fault_spec import Asked, families, parse
from fencepost.nemesis.partition import SHAPES
from fencepost.nemesis.restart import NEVER_S
from fencepost.nemesis.schedule import draw, from_rows, read
from fencepost.nemesis.targets import Layout

CLIENTS = [f"client-{n}" for n in range(1, 6)]


def layout(kind="etcd", servers=3, leads=True, replicated=False):
    nodes = [f"{kind}-{n + 1}" for n in range(servers)]
    clocks = ("wall",) if kind == "redis" else ("wall", "monotonic")
    shown = dict.fromkeys(nodes, clocks) | dict.fromkeys(CLIENTS, ("wall",))
    return Layout(
        nodes, CLIENTS, 2.0, 0.0, kind=KINDS[kind], leads=leads, replicated=replicated, shown=shown
    )


ETCD = layout()
REDLOCK = layout("redis", 5, leads=False)


def schedule(*entries, at=ETCD, seed=7, time_s=300):
    return draw(entries, seed, time_s, 5, at)


def test_an_entry_has_a_family_and_may_have_a_target_a_variant_an_interval_and_a_weight():
    text = "partition:random-halves/reject@1.5s=2"
    assert parse(text) == Asked("partition", "random-halves", "reject", 1.5, 2.0, text)
    assert parse("clock:redis-3/+1h") == Asked("clock", "redis-3", "+1h", text="clock:redis-3/+1h")
    assert parse("pause") == Asked("pause", text="pause")
    assert families(["pause:client=3", "pause/x", "clock@5s"]) == ["pause", "clock"]


@pytest.mark.parametrize(
    ("entry", "at", "why"),
    [
        ("", ETCD, "write FAMILY[:TARGET]"),
        ("pause:", ETCD, "write FAMILY[:TARGET]"),
        ("pause client", ETCD, "write FAMILY[:TARGET]"),
        ("flood", ETCD, "there is no fault 'flood'; choose one of: partition, "),
        ("pause=0", ETCD, "weight 0 is out of range"),
        ("pause=many", ETCD, "weight many is out of range"),
        ("pause@soon", ETCD, "the interval 'soon' is not a duration"),
        ("pause@0s", ETCD, "the interval '0s' is not a duration"),
        ("pause:redis-3", ETCD, "the test has no 'redis-3'; choose one of: server, "),
        ("kill:client-9", ETCD, "the test has no 'client-9'"),
        ("membership:client-1", ETCD, "the test has no 'client-1'"),
        ("pause:primary", REDLOCK, "none of its servers leads"),
        ("partition:primary", REDLOCK, "none of its servers leads"),
        ("membership:primary", REDLOCK, "none of its servers leads"),
        (
            "partition:bridge",
            layout("redis", 1),
            "bridge needs three servers or more, but there are 1",
        ),
        ("partition:requests/reject", ETCD, "leave reject out"),
        ("partition/tarpit", ETCD, "there is no /tarpit; choose one of: drop, reject"),
        (
            "pause:etcd-1/acquired",
            ETCD,
            "is a server: failpoints, other-holds and renewal are for clients",
        ),
        ("pause:etcd-1/renewal", ETCD, "is a server: failpoints, other-holds and renewal are for"),
        ("pause:client/renewal", ETCD, "no thread of this lock's clients renews a lease"),
        ("pause/asleep", ETCD, "there is no /asleep; choose one of: acquired, "),
        ("kill:all/wiped", ETCD, "see nemesis membership"),
        ("failover", ETCD, "a lock on one server cannot fail over"),
        ("failover:redis-1", layout("redis", 2, replicated=True), "it takes no target"),
        ("memory", ETCD, "it needs Redis servers, and these are etcd"),
        ("memory/volatile-ttl", REDLOCK, "there is no /volatile-ttl"),
        (
            "membership",
            layout("postgres", 1),
            "an empty server must be able to replace one that has left, and these are postgres",
        ),
        ("packet/corrupt", ETCD, "there is no /corrupt"),
        ("clock/never", ETCD, "one of jump, drift, strobe, monotonic, or write +5s"),
        ("clock/monotonic", REDLOCK, "does not show its monotonic clock"),
        ("clock:client/monotonic", ETCD, "only its wall clock can skew"),
        ("clock/+soon", ETCD, "'soon' is not a duration"),
    ],
)
def test_an_impossible_fault_is_refused_with_the_reason(entry, at, why):
    with pytest.raises(ValueError) as error:
        check([entry], at)
    assert why in str(error.value)


def test_a_clock_that_nothing_shows_is_refused():
    rows = [fault("clock", ["redis-1"], clocks=["monotonic"], offset_s=5)]
    with pytest.raises(ValueError, match="does not show its monotonic clock"):
        from_rows(rows, REDLOCK)


def fault(family, targets, **arguments):
    return {
        "at_s": 1,
        "duration_s": 2,
        "family": family,
        "targets": targets,
        "arguments": arguments,
    }


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (fault("partition", ["etcd-1"], links=[["etcd-1", "etcd-7"]]), "no node 'etcd-7'"),
        (fault("partition", ["etcd-1"]), "a partition needs links"),
        (fault("partition", ["client-1"], links=[["client-1", "client-2"]]), "no links to one"),
        (fault("pause", []), "it has no targets"),
        (fault("pause", ["etcd-1", "etcd-9"]), "the test has no node 'etcd-9'"),
        (fault("pause", ["client-1"], point="nowhere"), "clients have no failpoint 'nowhere'"),
        (fault("pause", ["client-1"], until="dawn"), "until 'dawn': there is only other-holds"),
        (fault("kill", ["etcd-1"], data="shredded"), "data 'shredded': choose one of"),
        (fault("clock", ["etcd-1"], kind="jump"), "clock jump: it needs offset_s"),
        (fault("delay", ["client-1"], source="client-1", to="client-2"), "client-2 is a client"),
        (fault("packet", ["etcd-1"], kind="late"), "kind 'late': choose one of"),
        (fault("memory", ["etcd-1"], policy="x"), "it needs Redis servers"),
        (fault("power", ["client-1"]), "client-1: power is for servers"),
        (fault("disk", ["etcd-1", "storage"]), "storage: disk is for servers"),
        (fault("cpu", ["client-2"]), "client-2: cpu is for servers"),
        (fault("cpu", ["etcd-1"], share=2), "a CPU share of 2 is out of range (0.01 to 1)"),
        (fault("pause", ["storage"]), "storage: pause is for servers and clients"),
        ({"at_s": 1, "duration_s": 1, "fault": "pause:etcd-9"}, "the test has no 'etcd-9'"),
        ({"at_s": 1, "fault": "pause"}, "missing required field `duration_s`"),
        ({"at_s": 1, "duration_s": 1, "fault": "pause", "targets": ["x"]}, "field `targets`"),
        ({"at_s": 1, "duration_s": 1}, "missing required field `fault`"),
        ("pause", "expected `object`, got `str`; a fault is an object with at_s, duration_s"),
    ],
)  # fmt: skip
def test_a_malformed_fault_is_named(row, why):
    good = fault("pause", ["etcd-1"])
    with pytest.raises(ValueError) as error:
        from_rows([good, row], ETCD)
    assert why in str(error.value)
    assert str(error.value).startswith("fault 2: ")


def test_a_schedule_s_file_may_give_faults_as_the_option_has_them(tmp_path):
    path = tmp_path / "faults.json"
    path.write_text(
        '[{"at_s": 5, "duration_s": 1, "fault": "kill:rolling"},'
        ' {"at_s": 2, "duration_s": 3, "fault": "clock:etcd-1/+1h"}]'
    )
    found = read(path, 7, ETCD)
    assert [(f.family, f.targets, f.at_s) for f in found] == [
        ("clock", ["etcd-1"], 2),
        ("kill", ["etcd-1"], 5),
        ("kill", ["etcd-2"], 8),
        ("kill", ["etcd-3"], 11),
    ]
    assert found[0].arguments["offset_s"] == 3600
    assert found == read(path, 7, ETCD)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("{}", "a schedule is a list"),
        ("[1]", "fault 1"),
    ],
)
def test_a_file_that_is_no_schedule_is_named(tmp_path, content, why):
    path = tmp_path / "faults.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError) as error:
        read(path, 7, ETCD)
    assert str(path) in str(error.value)
    assert why in str(error.value)


def test_entries_of_one_family_take_turns_by_their_weights():
    found = schedule("pause:client=9", "pause:server=1", time_s=3000)
    clients = [fault for fault in found if fault.targets[0] in CLIENTS]
    assert 0.82 < len(clients) / len(found) < 0.97


def test_an_entry_with_an_interval_has_a_schedule_of_its_own():
    often = schedule("pause:client@1s", "pause:server@20s")
    kinds = Counter(fault.targets[0] in CLIENTS for fault in often)
    assert kinds[True] > 3 * kinds[False] > 0
    alone = schedule("pause:server@20s")
    assert [f for f in often if f.targets[0] not in CLIENTS] == alone


def test_a_requested_target_and_variant_are_used():
    assert {f.targets[0] for f in schedule("pause:etcd-2")} == {"etcd-2"}
    assert {f.arguments["point"] for f in schedule("pause:client/before-write")} == {"before-write"}
    assert {f.arguments.get("until") for f in schedule("pause/other-holds")} == {"other-holds"}
    assert {f.arguments["how"] for f in schedule("partition/reject")} == {"reject"}
    assert {len(f.targets) for f in schedule("kill:majority")} == {2}
    assert {f.duration_s for f in schedule("kill:one/never")} == {NEVER_S}
    assert {f.arguments["data"] for f in draw(["kill:one/wiped"], 7, 60, 5, REDLOCK)} == {"wiped"}
    assert {f.arguments["offset_s"] for f in schedule("clock:all/+1h")} == {3600.0}
    back = schedule("clock:etcd-1/-500ms")
    assert {(f.arguments["offset_s"], *f.arguments["clocks"]) for f in back} == {(-0.5, "wall")}


def test_a_rolling_crash_hits_each_server_in_turn():
    found = schedule("kill:rolling", time_s=12)
    assert [fault.targets for fault in found[:3]] == [["etcd-1"], ["etcd-2"], ["etcd-3"]]
    assert len({fault.at_s for fault in found}) == len(found)


@given(st.integers(0, 2**32), st.sampled_from(SHAPES), st.sampled_from([3, 4, 5, 7]))
@settings(max_examples=200)
def test_a_partition_cuts_the_links_of_its_shape(seed, shape, servers):
    at = layout(servers=servers)
    links = (
        FAMILIES["partition"]
        .draw(Random(seed), at, Asked("partition", shape))[0]
        .arguments["links"]
    )
    cut = {frozenset(link) for link in links}
    sees = {
        node: {
            other for other in at.servers if other == node or frozenset((node, other)) not in cut
        }
        for node in (*at.servers, *CLIENTS, "primary")
    }
    majority = servers // 2 + 1
    assert all(len(link) == 2 and link[0] != link[1] for link in links)
    assert not any(set(link) <= set(CLIENTS) for link in links)
    match shape:
        case "halves" | "random-halves":
            sides = {frozenset(sees[node]) for node in (*at.servers, *CLIENTS)}
            assert sorted(len(side) for side in sides) == [servers // 2, (servers + 1) // 2]
        case "ring":
            assert all(len(sees[node]) >= majority for node in (*at.servers, *CLIENTS))
            assert len({frozenset(sees[client]) for client in CLIENTS}) == min(
                servers, len(CLIENTS)
            )
        case "bridge":
            assert sum(len(sees[server]) == servers for server in at.servers) == 1
        case "one" | "minority" | "majority":
            alone = [server for server in at.servers if sees[server] == {server}]
            alone = alone or [s for s in at.servers if frozenset((s, CLIENTS[0])) in cut]
            wanted = {"one": 1, "minority": max(1, (servers - 1) // 2), "majority": majority}
            assert (
                len([s for s in at.servers if frozenset((s, CLIENTS[0])) in cut]) == wanted[shape]
            )
        case "clients":
            assert all(len(sees[client]) == majority for client in CLIENTS)
            assert all(len(sees[server]) == servers for server in at.servers)
        case "storage":
            assert [link[1] for link in links] == ["storage"]
        case "primary":
            assert set(chain(*links)) == {"primary", *at.servers, *CLIENTS}
        case _:
            assert {link[0] for link in links} <= set(CLIENTS)
