"""A run with real clients neither blocks nor lasts for ever if its clients never rest."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.clocks import Clocks
from fencepost.hunt.live.look import Look
from fencepost.hunt.live.run import RealRun
from fencepost.hunt.live.search import Search
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.unknown import Unknown


class Program:
    """A program that is always at work."""

    hurries = False

    def __init__(self):
        self.cpu_s = 0.0
        self.version = 2
        self.clock, self.reads_real = None, False
        self.dead = False
        self.written = []

    def strike(self):
        self.dead = True

    def last_messages(self):
        return self.written

    def waits(self):
        return False

    def works(self):
        return True

    def worked_s(self):
        return self.cpu_s


@pytest.fixture
def hunt(tmp_path):
    (tmp_path / "lock.sh").write_text("")
    return described(
        "", {}, {"seed": 1}, servers="redis:1", program="sh lock.sh", ship=tmp_path, faults="pause"
    )


@pytest.fixture
def run(hunt):
    """A run whose clients are ready and have sent nothing yet."""
    programs = [Program() for _ in hunt.setting.clients]
    made = RealRun(hunt.setting, Schedule(), table(hunt.setting), programs)
    made.started_ns = made.world.begin()
    made.world.rest()
    return made


def test_time_passes_after_a_while_although_a_client_never_rests(run):
    assert not run.calms(1 << 62)
    assert run.calms(0)
    assert not run.is_over


class Clock:
    jumps, later_ns = True, 0

    def stand(self, shown_ns):
        pass

    run = stand


@pytest.fixture
def stands(hunt, monkeypatch):
    """A run whose clients' clocks stand while its clients have something to do."""
    monkeypatch.setattr("fencepost.hunt.live.run.STILL_NS", 0)
    monkeypatch.setattr("fencepost.hunt.live.world.STILL_NS", 0)
    programs = [Program() for _ in hunt.setting.clients]
    made = RealRun(hunt.setting, Schedule(), table(hunt.setting), programs)
    made.started_ns = made.world.begin(Clocks([Clock() for _ in programs], time.monotonic_ns()))
    return made


def test_time_stands_for_clients_that_get_no_processor(stands):
    before = stands.world.now
    assert not any(stands.calms(0) for _ in range(5))
    assert stands.world.now == before
    stands.programs[0].cpu_s = 0.3
    assert stands.calms(0) and stands.world.now > before


def test_time_does_not_make_up_for_clients_that_rested_late(stands):
    before = stands.world.now
    for one in stands.programs:
        one.waits = lambda: True
    for _ in range(5):
        stands.world.stir()
        assert stands.calms(0) and stands.world.now == before
    assert not stands.late_ns
    stands.programs[0].cpu_s = 0.3
    stands.world.stir()
    assert stands.calms(0) and stands.world.now > before and stands.late_ns


def test_time_stands_no_longer_for_clients_that_wait_for_something_else(stands):
    for one in stands.programs:
        one.works = lambda: False
    assert stands.calms(0)


def test_a_thread_that_gets_no_processor_does_not_let_time_pass(stands, monkeypatch):
    monkeypatch.setattr("fencepost.hunt.live.run._LOOKS", 0)
    stands.world.rest()
    for one in stands.programs:
        one.wakes_ns = lambda now: None
    assert all(stands._jumps() for _ in range(5))
    stands.world.stirred = False
    stands.programs[0].cpu_s = 0.03
    assert not stands._jumps()


def test_a_run_ends_whose_clients_take_too_much_processor_time(run):
    run.calms(1 << 62)
    run.programs[0].cpu_s = 60.0
    assert run.calms(0)
    assert run.is_over and run.hung and run.worked_s == 60.0


def test_clients_that_rest_may_take_processor_time(run):
    run.programs[0].cpu_s = 60.0
    for one in run.programs:
        one.waits = lambda: True
    assert run.calms(0) and not run.is_over


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"worked_s": 4.0}, "it is always at work: 4 s of processor time in one schedule"),
        ({}, "it does not end its op acquire within"),
    ],
)
def test_a_program_that_does_not_end_its_ops_is_refused(hunt, run, seen, words):
    run.hung, run.clients[0].activity = True, "acquire"
    vars(run).update(seen)
    for program in run.programs:
        program.extends, program.promises = True, None
    conductor = SimpleNamespace(play=lambda jobs: [run])
    with pytest.raises(Unknown, match=words):
        Search(hunt.setting, conductor, 1, lambda tried: None).hunt(1.0, False)


def test_a_search_that_is_given_a_look_plays_no_undisturbed_schedule_for_it(hunt):
    look = Look((4, 4), False, 0, 0.0, 1.0, "", True, None, [])
    with pytest.raises(Unknown, match="it sent nothing to its servers"):
        Search(hunt.setting, None, 1, lambda tried: None, look).hunt(1.0, False)


def event(type, f, **value):
    return {"time": 0, "process": 0, "type": type, "f": f, "value": {"lock": "orders", **value}}


def test_what_a_program_had_written_when_it_was_killed_comes_before_its_end(run):
    """Its request had been sent, too, and is answered."""
    written = [event("ok", "write"), event("invoke", "release"), {"control": "ready"}]
    run.programs[0].written = written
    place = len(run.rows)
    run.clients[0].up = False
    run.rows.append((run.world.now, "nemesis", "ok", "kill", {}, None, None, 0))
    run._carry_out(place)
    shown = [row[2:4] for row in run.rows[place:]]
    assert shown == [("ok", "write"), ("invoke", "release"), ("ok", "kill")]
