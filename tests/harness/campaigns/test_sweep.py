"""The sweep: the meaning of its axes, its cells, their faults, and how it resumes."""

from __future__ import annotations

import pytest

from fencepost.harness.campaigns import campaign as campaigns
from fencepost.harness.campaigns import sweep as sweeps
from fencepost.harness.campaigns.axes import AXES
from fencepost.harness.campaigns.sweep import cells, plan, schedule, seeded, values
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec.spec import layout_of
from fencepost.report.pages import sweep as page
from tests.harness.campaigns.places import Places, counted


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(sweeps, "tally", counted)
    return tmp_path / "results"


def small(lock="redlock", x="ttl=1s..4s", y="pause=0.5s..8s", steps="2x3", **more):
    return plan(lock, x, y, 7, steps, **more)


def drawn(asked, x, y):
    (cell,) = [one for one in cells(asked) if (one.x, one.y) == (x, y)]
    spec = seeded(asked, cell, 1)
    return spec, schedule(asked, cell, spec)


def test_times_are_as_many_times_the_one_before_and_rates_are_equally_far_apart():
    assert values(0.5, 8, 5, False, False) == (0.5, 1, 2, 4, 8)
    assert values(1.05, 2, 3, True, False) == (1.05, 1.52, 2)
    assert values(2, 4, 5, False, True) == (2, 3, 4)


def test_a_sweep_has_a_cell_for_each_pair_of_values():
    found = cells(small())
    assert [(cell.x, cell.y) for cell in found] == [
        (1, 0.5), (4, 0.5), (1, 2), (4, 2), (1, 8), (4, 8),
    ]  # fmt: skip
    assert all(cell.spec for cell in found)
    assert [cell.spec.ttl_ms for cell in found] == [1000, 4000] * 3


def test_each_axis_sets_its_parameter_and_nothing_renews_a_lease_meanwhile():
    other = {"ttl": "pause=0.5s..8s", "clients": "pause=0.5s..8s"}
    for name, axis in AXES.items():
        if axis.option:
            continue
        ends = {"clients": "2..4", "drift": "1.1..2"}.get(name, "1s..4s")
        asked = small(x=other.get(name, "ttl=1s..4s"), y=f"{name}={ends}", steps="2x2")
        cell = cells(asked)[-1]
        spec, faults = seeded(asked, cell, 1), schedule(asked, cell, seeded(asked, cell, 1))
        assert spec.work == {"extend": 0} and len(faults) == sweeps.FAULTS
        assert spec.families == [faults[0].family] and bool(axis.sets) != bool(axis.injects)


def test_a_pause_stops_a_client_before_its_write_for_the_given_time():
    _, faults = drawn(small(), 4, 8)
    assert {fault.duration_s for fault in faults} == {8}
    assert {fault.arguments["point"] for fault in faults} == {"before-write"}
    assert all(fault.targets[0].startswith("client-") for fault in faults)


@pytest.mark.parametrize("axis", ["restart-delay=0.1s..4s", "jump=0.1s..4s", "drift=1.1..2"])
def test_faults_that_make_servers_forget_hit_a_majority(axis):
    spec, faults = drawn(small(y=axis, steps="2x2"), 4, 2 if "drift" in axis else 4)
    assert all(len(set(fault.targets)) == 3 for fault in faults)
    assert spec.hold == "0.6ttl..0.8ttl"
    said = [fault.arguments.get("rate") or fault.arguments.get("offset_s") for fault in faults]
    wanted = {"restart-delay": None, "jump": 4.0, "drift": 2.0}[axis.partition("=")[0]]
    assert set(said) == {wanted}


def test_no_fault_starts_before_the_last_one_has_ended_or_ends_with_the_run():
    asked = small(steps="4x4")
    for cell in cells(asked):
        for number in (1, 2, 3):
            spec = seeded(asked, cell, number)
            faults = schedule(asked, cell, spec)
            ends = [fault.at_s + fault.duration_s for fault in faults]
            assert all(end < later.at_s for end, later in zip(ends, faults[1:], strict=False))
            assert ends[-1] < spec.time_s


def test_a_cell_has_other_faults_in_another_round_and_the_same_ones_again():
    asked = small()
    first, again = drawn(asked, 4, 8), drawn(asked, 4, 8)
    (cell,) = [one for one in cells(asked) if (one.x, one.y) == (4, 8)]
    other = schedule(asked, cell, seeded(asked, cell, 2))
    assert first == again and other != first[1]


def test_a_parameter_that_the_servers_do_not_support_is_a_cell_with_its_reason():
    found = cells(small("etcd", x="ttl=1s..4s", steps="3x2"))
    reasons = {cell.x: cell.reason for cell in found}
    assert reasons[1].startswith("TTL 1000 ms is too short")
    assert reasons[2] == reasons[4] == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lock": "redlok"}, "there is no lock 'redlok'; choose one of: "),
        ({"x": "speed=1..2"}, "there is no axis 'speed'; choose one of: ttl, clients, renew"),
        ({"x": "ttl=1s"}, "axis 'ttl=1s': write ttl=FROM..TO"),
        ({"x": "ttl=soon..2s"}, "axis ttl: 'soon' is not a duration"),
        ({"x": "ttl=4s..1s"}, "axis ttl=4 s..1 s is out of range or not ascending (100 ms to 10"),
        ({"y": "drift=0.5..2"}, "axis drift=0.5..2 is out of range"),
        (
            {"y": "clients=2..4"},
            "ttl and clients: one axis must be a setting (ttl, clients, renew-deadline, "
            "retry-period), and the",
        ),
        ({"x": "jump=1s..2s"}, "jump and pause: a sweep has one fault"),
        ({"fault": "cut=1s"}, "pause and cut=1s: a sweep has one fault"),
        ({"y": "clients=2..4", "fault": "luck=1s"}, "there is no fault 'luck'; choose one of: "),
        ({"y": "clients=2..4", "fault": "pause=soon"}, "fault pause: 'soon' is not a duration"),
        ({"y": "clients=2..4", "fault": "pause=1h"}, "fault pause=1 h is out of range (50 ms to"),
        ({"x": "renew-deadline=1s..2s"}, "redlock cannot be swept with these arguments: lock red"),
        ({"steps": "6"}, "steps '6': write 6x6, with 2 to 12"),
        ({"steps": "1x6"}, "steps '1x6'"),
        (
            {"lock": "etcd", "y": "drift=1.1..2"},
            "etcd cannot be swept with these arguments: etcd shows its clocks",
        ),
        (
            {"guard": "fenced", "lock": "redis-py"},
            "redis-py cannot be swept with these arguments: guard fenced",
        ),
    ],
)
def test_invalid_arguments_are_refused_before_anything_starts(given, message):
    with pytest.raises(BadArguments) as raised:
        small(**given)
    assert message in str(raised.value)


ELECTION = {"lock": "kubernetes-client", "y": "renew-deadline=1.5s..6s", "steps": "3x3"}


def test_two_settings_are_swept_under_one_fault_that_stays_the_same():
    asked = small(**{**ELECTION, "x": "ttl=2s..8s", "fault": "cut=5s"})
    run = {(cell.x, cell.y): cell.spec for cell in cells(asked) if cell.spec}
    assert {spec.options["renew_deadline_ms"] for spec in run.values()} == {1500, 3000, 6000}
    assert {spec.ttl_ms for spec in run.values()} == {2000, 4000, 8000}
    _, faults = drawn(asked, 8, 3)
    assert {(one.family, one.duration_s) for one in faults} == {("partition", 5)}
    assert "--fault cut=5s --steps 3x3" in sweeps.command(asked)
    assert campaigns.create(asked).folder and resumed("latest").plan == asked


def test_numbers_that_an_elector_refuses_are_a_cell_with_its_reason():
    asked = small(**{**ELECTION, "x": "ttl=2s..8s", "fault": "cut=5s"})
    reasons = {(cell.x, cell.y): cell.reason for cell in cells(asked)}
    assert "make renew_deadline_ms shorter than the lease" in reasons[2, 3]
    assert reasons[8, 6] == reasons[2, 1.5] == ""


def test_an_elector_has_long_reigns_and_time_to_take_over_between_faults():
    asked = small("kubernetes-client", "ttl=2s..8s", "pause=1s..12s", "2x2")
    spec, faults = drawn(asked, 8, 12)
    assert (spec.hold, len(spec.clients)) == ("30ttl..30ttl", 2)
    assert {tuple(fault.targets) for fault in faults} == {("holder",)}
    ends = [fault.at_s + fault.duration_s for fault in faults]
    assert all(later.at_s - end > 16 for end, later in zip(ends, faults[1:], strict=False))
    assert spec.time_s - ends[-1] > 16


def test_a_cut_separates_one_client_from_all_servers():
    _, faults = drawn(small(y="cut=0.5s..8s"), 4, 8)
    for fault in faults:
        near = {link[0] for link in fault.arguments["links"]}
        assert len(near) == 1 and near < set(fault.targets)
        assert len(fault.arguments["links"]) == 5 and fault.duration_s == 8


def resumed(name):
    return campaigns.resumed(name, "sweep", sweeps.from_json, lambda words: None)


def carry_out(sweep, stop_after=99):
    """The seeds of the runs, in order, and their faults."""
    places = Places()
    places.fails[stop_after + 1] = KeyboardInterrupt()
    places.carry_out(sweep)
    return [(run[3], faults) for run, faults in zip(places.ran, places.schedules, strict=True)]


def test_a_stopped_sweep_resumes_with_the_missing_cells():
    straight = carry_out(campaigns.create(small()))
    found = campaigns.create(small())
    with pytest.raises(KeyboardInterrupt):
        carry_out(found, stop_after=2)
    again = resumed("latest")
    assert again.plan == found.plan
    assert page.read(again.folder)["versions"] == {"server": "1.0"}
    assert straight[2:] == carry_out(again)
    assert again.done == 1
    plain = [seeded(found.plan, cell, 1).seed for cell in found.plan.cells]
    assert [seed for seed, _ in straight] != plain
    assert sorted(seed for seed, _ in straight) == sorted(plain)
    assert all(len(faults) == sweeps.FAULTS for _, faults in straight)


def test_a_stored_sweep_has_the_command_that_makes_it_again():
    asked = small("redlock", options={"node_timeout_ms": "20"}, y="drift=1.1..2")
    found = campaigns.create(asked)
    stored = page.read(found.folder)
    assert stored["plan"]["command"] == (
        "fencepost sweep redlock -o node_timeout_ms=20 --x ttl=1s..4s --y drift=1.1..2 "
        "--steps 2x3 --seed 7"
    )
    assert stored["plan"]["y"]["shown"] == ["1.1", "1.55", "2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.replace('"redlock"', '"gone"'), "there is no lock 'gone'"),
        (lambda s: s.replace('"schema": 2', '"schema": 9'), "its version is 9"),
        (lambda s: s.replace('"axis": "ttl"', '"axis": "luck"'), "luck"),
        (lambda s: s.replace('"rows": [', '"rows": 7, "none": ['), "cannot be read"),
        (lambda s: s.replace('"steps"', '"stops"'), "missing required field `steps`"),
    ],
)
def test_a_stored_sweep_that_cannot_be_used_is_refused(change, message):
    found = campaigns.create(small())
    path = found.folder / "campaign.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(BadArguments, match=message):
        resumed(str(found.folder))


def test_a_folder_that_is_no_sweep_is_not_resumed():
    with pytest.raises(BadArguments, match="'nowhere' is not a sweep"):
        resumed("nowhere")


def test_the_layout_of_a_cell_has_its_clients():
    found = cells(small(x="clients=2..4", y="pause=1s..2s", steps="2x2"))
    assert [len(layout_of(cell.spec).clients) for cell in found] == [2, 4, 2, 4]
