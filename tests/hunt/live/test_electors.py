"""Hunts of electors that are programs: successors, defects found, sound ones, and refusals."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.hunting.hunts import described
from fencepost.harness.hunting.programs import conductor
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.conductor import Job
from fencepost.hunt.sim.schedule import Schedule

pytestmark = pytest.mark.slow
SDK = Path(__file__).parents[3] / "sdk"
PROGRAMS = Path(__file__).parent / "programs"
FAULTS = "pause,partition,delay,packet"
node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


class Enough(Exception):
    """A hunt has played as many schedules as on any machine, however busy it is."""


@pytest.fixture
def folder(tmp_path):
    """Lay the files out as a user does: the SDK in the program's folder."""
    for file in ("python/fencepost_sdk.py", "javascript/fencepost.js"):
        shutil.copy(SDK / file, tmp_path)
    for name in ("elector.py", "elector.js", "lock.py"):
        shutil.copy(PROGRAMS / name, tmp_path)
    return tmp_path


def hunt_of(
    folder, defect="none", command="", faults=FAULTS, elector=True, stops=None, ttl=None, **more
):
    program = command or f"{sys.executable} elector.py {defect}"
    return described(
        "", {}, {"seed": 1, "stops": stops, "ttl": ttl}, servers="redis:1", program=program,
        ship=folder, faults=faults, elector=elector, **more,
    )  # fmt: skip


def played(hunt, *schedules):
    with conductor(hunt.spec, hunt.setting, 1) as made:
        return list(made.play(Job(schedule) for schedule in schedules))


def action(hunt, kind, client):
    found = enumerate(table(hunt.setting), 1)
    return next(n for n, one in found if one.kind == kind and one.client == client)


def ops(run, name):
    return [row[1:4] for row in run.rows if row[6] == name and row[2] != "invoke"]


def test_candidates_lead_one_after_the_other_and_each_schedule_has_new_programs(folder):
    # It counts its lease by the real clock: without the processor for a short one, it gives up.
    first, second = played(hunt_of(folder, ttl="2s"), Schedule(), Schedule())
    for run in (first, second):
        for name in ("client-1", "client-2"):
            done = [op[1:] for op in ops(run, name)]
            assert {("ok", f) for f in ("acquire", "read", "write", "release")} <= set(done)
        assert run.came_back and not run.hung
    assert not {one.pid for one in first.programs} & {one.pid for one in second.programs}


def test_a_leader_that_is_paused_past_its_deadline_has_a_successor(folder):
    hunt = hunt_of(folder, "none", faults="pause:client")
    # The third message of client-1: it reads the resource, and leads.
    (run,) = played(hunt, Schedule((0, 0, 2), ((5, action(hunt, "pause", 0)),)))
    mine = ops(run, "client-1")
    ended = mine.index((0, "ok", "close"))
    assert (0, "ok", "acquire") in mine[:ended]
    # The number of the successor is two more, and nothing of the predecessor comes after its end.
    assert {process for process, *_ in mine[ended + 1 :]} <= {2, 4, 6}
    closes = Counter(row[1:4] for row in run.rows if row[3] == "close")
    assert closes[(0, "invoke", "close")] == closes[(0, "ok", "close")] == 1


@node
def test_the_time_of_a_successor_goes_on_from_that_of_its_predecessor(folder):
    hunt = hunt_of(folder, command="node elector.js none", faults="pause:client")
    # It works for longer than a lease, and campaigns twice.
    paused = Schedule((0, 0, 2, 0, 1), ((5, action(hunt, "pause", 0)),))
    with conductor(hunt.spec, hunt.setting, 1) as made:
        (run,) = made.play([Job(paused)])
        if any(one.clock is None for one in run.programs):
            pytest.skip("the clocks of a program cannot be set here")
    assert not run.hung and not run.late_ns
    closed = next(row[0] for row in run.rows if row[1:4] == (0, "ok", "close"))
    later = [row[0] for row in run.rows if row[1] == 2]
    assert later and closed <= min(later) and max(later) <= run.world.now
    # Its leases are those of the servers, by the same clock.
    until = [row[4]["deadline"] - row[0] for row in run.rows if row[2:4] == ("ok", "acquire")]
    assert all(0.8 < left / hunt.setting.ttl_ns <= 0.875 for left in until)


@node
@pytest.mark.parametrize(
    ("defect", "faults", "broken"),
    [
        ("works-on", "partition", "lease_exclusion"),
        ("hangs", "packet", "lease_exclusion"),
        ("no-owner-check", "pause", "lease_exclusion"),
    ],
)
def test_a_defect_of_an_elector_is_found_without_a_hint(folder, defect, faults, broken):
    command = f"node elector.js {defect}"
    found = hunt_of(folder, command=command, faults=faults, budget="1200s").carry_out(4)[1]
    assert found is not None and next(iter(found.broken)) == broken
    assert any("begins to lead" in step.words for step in found.story)
    assert found.story[-1].words.startswith(f"{broken} is violated")


@node
def test_a_sound_elector_is_not_accused(folder):
    told = []

    def tell(tried):
        told.append(tried.schedules)
        if len(told) == 40:
            raise Enough

    hunt = hunt_of(folder, command="node elector.js none", budget="1200s")
    with pytest.raises(Enough):  # otherwise it has a find
        hunt.carry_out(4, tell)
    assert told[-1] == 40, "a schedule did not end"


def test_work_that_goes_on_after_a_lease_is_found_where_time_cannot_be_set(folder, monkeypatch):
    monkeypatch.chdir(folder)
    hunt = hunt_of(folder, "works-on", faults="packet", budget="1200s")
    tried, find = hunt.carry_out(4)
    assert find is not None and next(iter(find.broken)) == "lease_exclusion"
    outcome, made = hunt.store(tried, find, "the command")
    assert made is None and outcome.verdicts["lease_exclusion"].valid is False
    page = (outcome.folder / "report.html").read_text()
    assert "begins to lead" in page
    words = hunt.again("--replay", str(outcome.folder / "schedule.json"))
    assert " --elector " in words
    again = hunt_of(folder, "works-on", faults="packet", replay=outcome.folder / "schedule.json")
    assert again.carry_out(4)[1] is not None


def test_the_deadlines_of_an_elector_decide_whether_its_clients_are_paused(folder):
    assert "pause" in hunt_of(folder, faults=None).setting.faults
    assert "pause" not in hunt_of(folder, "works-on", faults=None).setting.faults
    assert "pause" not in hunt_of(folder, faults=None, stops="callback").setting.faults


@pytest.mark.parametrize(
    ("defect", "words"),
    [
        ("leads-twice", "started was called twice in one run"),
        ("returns", "run returned while it leads; it should call stopped"),
        ("ends", "its program ended with exit code 3: Error: out of memory"),
        ("prints", "'listening on port 3000', which is no line of the protocol"),
    ],
)
def test_an_elector_with_a_mistake_of_its_own_is_refused_in_a_sentence(folder, defect, words):
    with pytest.raises(Crashed, match=words):
        hunt_of(folder, defect, budget="1s").carry_out(1)


def test_an_elector_that_asks_no_server_is_refused(folder):
    with pytest.raises(BadArguments, match="sent nothing to its servers"):
        hunt_of(folder, "never-asks", budget="1s").carry_out(1)


def test_an_elector_that_is_never_elected_is_refused(folder):
    with pytest.raises(Crashed, match="no candidate was elected in a run without faults"):
        hunt_of(folder, "never-elected", budget="1s").carry_out(1)


def test_a_lock_is_no_elector_and_an_elector_no_lock(folder):
    with pytest.raises(Crashed, match="it is a lock: omit --elector"):
        hunt_of(folder, command=f"{sys.executable} lock.py none", budget="1s").carry_out(1)
    with pytest.raises(Crashed, match="it is an elector: add --elector"):
        hunt_of(folder, elector=False, budget="1s").carry_out(1)


def test_no_schedule_of_an_elector_is_replayed_on_real_servers(folder):
    with pytest.raises(BadArguments, match="no schedule of an elector can be replayed"):
        hunt_of(folder).must_have_servers()
