"""The engine: what is carried out, in which order, and what is kept, whatever happens meanwhile."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from contextlib import closing, contextmanager
from xml.etree import ElementTree

import pytest

from fencepost.harness import locked
from fencepost.harness.campaigns import engine
from fencepost.harness.campaigns.campaign import Campaign, create
from fencepost.harness.campaigns.executors import Clusters, Gone
from fencepost.harness.campaigns.item import Hushed
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import How, View, carry_out
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.remote.remote import RemoteError
from fencepost.report.campaign_files import lines
from fencepost.report.exports.batches import Collected, Line
from tests.dasked import dasked, needs_dask
from tests.harness.campaigns.fakes import Fake, killed_while_it_writes, leaves_a_run, resume, says

ROWS = ("a1", "a2", "b1")


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


class Places:
    """Notes each cluster that comes up, and what ran there."""

    def __init__(self, lanes=1, run=None, up_s=0.0):
        self.lanes, self.up_s, self.ups, self.downs, self.stopped = lanes, up_s, [], 0, False
        self.run = run or (lambda item: item.does(item, None, Hushed()))
        self.ran = []

    @contextmanager
    def place(self, items):
        cluster = len(self.ups)
        self.ups.append("".join(sorted({item.kind for item in items})))
        try:
            yield lambda item: (self.ran.append((item.row, item.number, cluster)), self.run(item))[
                1
            ]
        finally:
            self.downs += 1

    def _noted(self, item, cluster):
        self.ran.append((item.row, item.number, cluster))
        return self.run(item)

    def stop(self):
        self.stopped = True


def run(places, plan, *given):
    made = create(plan)
    said = []
    whole = engine.carry_out([made], places, lambda _, line: said.append(line), *given)
    return whole, said, made


def stored(made):
    return lines(made.folder / "campaign.jsonl")


def test_each_item_has_a_line_and_each_kind_a_cluster():
    places = Places()
    whole, said, made = run(places, Fake(ROWS))
    assert whole and said == stored(made)
    assert [(line["row"], line["number"], line["seed"]) for line in said] == [
        ("a1", 1, 100), ("a2", 1, 101), ("b1", 1, 102),
    ]  # fmt: skip
    assert said[0]["words"] == "a1 1 7"
    assert (places.ups, places.downs) == (["a", "b"], 2)


def test_rounds_follow_one_another_until_there_are_none():
    whole, said, made = run(Places(), Fake(ROWS, rounds=2), None)
    assert whole and [line["number"] for line in said] == [1, 1, 1, 2, 2, 2]
    assert made.done == 2


@pytest.mark.parametrize(("budget_s", "ran"), [(21.9, 0), (22.0, 2), (41.9, 2), (42.0, 4)])
def test_nothing_starts_that_would_end_after_the_budget(monkeypatch, budget_s, ran):
    """An item takes 10 s, and there have to be 12 s more where a cluster has to come up."""
    now = [0.0]
    monkeypatch.setattr(engine.time, "monotonic", lambda: now[0])

    def slowly(item):
        now[0] += 10.0
        return says(item, None, None)

    whole, said, _ = run(Places(run=slowly), Fake(("a1", "a2")), None, budget_s)
    assert not whole and len(said) == ran and now[0] <= budget_s


def test_lanes_run_at_the_same_time_on_clusters_of_their_own():
    both = threading.Barrier(2, timeout=120)

    def together(item):
        both.wait()
        return says(item, None, None)

    places = Places(2, together)
    whole, said, made = run(places, Fake(("a1", "a2", "b1", "b2")))
    assert whole and sorted(places.ups) == ["a", "b"]
    assert sorted(line["row"] for line in said) == ["a1", "a2", "b1", "b2"]
    assert sorted(map(str, stored(made))) == sorted(map(str, said))


@pytest.mark.parametrize(("up_s", "lanes"), [(0.0, 2), (12.0, 1)])
def test_a_lane_joins_the_kind_of_another_if_its_own_cluster_pays_off(up_s, lanes):
    """Dask's workers bring a cluster up for each item: there a lane costs nothing more."""
    both = threading.Barrier(lanes, timeout=120)

    def together(item):
        if item.row != "a3":
            both.wait()
        return says(item, None, None)

    places = Places(2, together, up_s)
    assert run(places, Fake(("a1", "a2", "a3")))[0]
    assert len(places.ups) == lanes


def test_a_lane_that_fails_stops_the_executor_and_the_others():
    def fails(item):
        raise ZeroDivisionError("a defect")

    places = Places(2, fails)
    with pytest.raises(ZeroDivisionError):
        run(places, Fake(("a1", "a2", "a3", "b1", "b2", "b3")))
    assert places.stopped and places.downs == len(places.ups) and len(places.ran) <= 2


@pytest.mark.parametrize("error", [Crashed("it is down"), RemoteError("it is down")])
def test_an_item_that_crashes_has_a_line_and_the_next_one_a_new_cluster(error):
    def crashes(item):
        if item.row == "a1":
            raise error
        return says(item, None, None)

    places = Places(run=crashes)
    whole, said, _ = run(places, Fake(("a1", "a2", "a3")))
    assert whole and said[0] == {"row": "a1", "number": 1, "seed": 100, "crashed": "it is down"}
    assert [cluster for *_, cluster in places.ran] == [0, 1, 1]


def test_an_executor_that_is_gone_ends_it_and_what_was_running_has_no_line():
    def gone(item):
        raise Gone("the scheduler is gone")

    made = create(Fake(ROWS))
    with pytest.raises(Gone):
        engine.carry_out([made], Places(run=gone), lambda *line: None)
    assert stored(made) == [] and len(made.left(1)) == 3


@pytest.mark.parametrize(("tries", "ran", "said"), [(1, 1, None), (2, 2, 2), (5, 3, 3)])
def test_an_item_is_repeated_until_it_settles_as_often_as_it_may(tries, ran, said):
    count = [0]

    def third(item):
        count[0] += 1
        return says(item, None, None)

    more = {"tries": tries, "settled": lambda found: count[0] == 3}
    _, (line,), _ = run(Places(run=third), Fake(("a1",), more=more))
    assert (count[0], line.get("tries")) == (ran, said)


def test_what_crashes_is_not_repeated():
    def crashes(item):
        raise Crashed("it is down")

    places = Places(run=crashes)
    run(places, Fake(("a1",), more={"tries": 3}))
    assert len(places.ran) == 1


@pytest.mark.parametrize("at", [1, 3])
def test_a_campaign_that_is_killed_in_the_middle_of_a_line_is_resumed_without_it(at):
    process = multiprocessing.get_context("fork").Process(target=killed_while_it_writes, args=(at,))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    made = resume()
    names = ["a1", "a2", "b1", "b2"]
    assert [item.row for item in made.left(1)] == names[at - 1 :]
    assert engine.carry_out([made], Places(), lambda *line: None)
    assert [line["row"] for line in stored(made)] == names
    assert resume().left(1) == [] and resume().done == 1


def test_what_has_finished_is_not_carried_out_again():
    _, _, made = run(Places(), Fake(ROWS, rounds=1))
    content = (made.folder / "campaign.jsonl").read_bytes().splitlines(keepends=True)
    (made.folder / "campaign.jsonl").write_bytes(content[0] + content[2])
    places = Places()
    assert engine.carry_out([resume()], places, lambda *line: None)
    assert [row for row, *_ in places.ran] == ["a2"]


def test_a_line_of_a_row_that_is_not_there_is_refused():
    _, _, made = run(Places(), Fake(ROWS))
    path = made.folder / "campaign.jsonl"
    path.write_text(path.read_text().replace('"row":"a2"', '"row":"zz"'))
    with pytest.raises(BadArguments, match="cannot resume"):
        resume()


def test_a_disk_that_takes_half_of_a_line_keeps_none_of_it(monkeypatch):
    made, write = create(Fake(ROWS)), os.write
    monkeypatch.setattr("os.write", lambda file, content: write(file, content[:5]))
    with pytest.raises(OSError, match="no space is left"):
        engine.carry_out([made], Places(), lambda *line: None)
    assert (made.folder / "campaign.jsonl").read_bytes() == b""


def test_several_campaigns_share_clusters_and_one_has_a_folder_once_it_begins(folder):
    first, second = Campaign(Fake(("a1",), rounds=1), "one"), Campaign(Fake(("a2",)), "two")
    places = Places(run=lambda item: (seen.append(second.has_begun), says(item, None, None))[1])
    seen = []
    assert engine.carry_out([first, second], places, lambda *line: None)
    assert seen == [False, True] and places.ups == ["a"]
    assert [path.name for path in sorted(folder.glob("*/2*"))] == [
        first.folder.name, second.folder.name
    ]  # fmt: skip


def test_a_campaign_says_that_it_is_running():
    made = create(Fake(ROWS))
    with made.running():
        assert locked.is_live(made.folder)
        with pytest.raises(BadArguments, match="is still running"):
            resume()
    assert not locked.is_live(made.folder)


@pytest.mark.slow
@needs_dask
def test_dask_s_workers_carry_items_out_and_what_they_leave_comes_here(tmp_path, folder):
    from fencepost.harness.campaigns.dask_executor import Workers

    with dasked(tmp_path) as dask:
        dask.ready()
        with closing(Workers(dask.address, ahead=2)) as workers:
            assert workers.lanes == 4
            _, light, _ = run(workers, Fake(tuple("abcdefgh"), more={"leaves": False}))
            _, whole, made = run(workers, Fake(ROWS, does=leaves_a_run))
    assert sorted(line["row"] for line in light) == list("abcdefgh")
    for line in whole:
        test = json.loads((made.folder / line["run"] / "test.json").read_text())
        assert test == {"row": line["row"]}
    assert len({line["worker"] for line in (*light, *whole)}) == 2


# What a CI and a program are told.


def view(fails=()):
    def collected(folder):
        rows = {
            line["row"]: Line(line.get("crashed") or line["words"], state=(
                "error" if "crashed" in line else "failure" if line["row"] in fails else "passed"
            ))
            for line in lines(folder / "campaign.jsonl")
        }  # fmt: skip
        return Collected("bench", "So it is.", None, [], rows, name="fake")

    def ended(found):
        screen.write("the end")

    return View(
        lambda found, line: screen.write(f"{line['row']} is done"), ended,
        lambda found: found.folder / "report.html",
        lambda found: int(found.any("failure")), collected,
    )  # fmt: skip


def test_junit_and_a_summary_are_written_of_every_kind(tmp_path, capsys):
    how = How(junit=tmp_path / "junit.xml", summary=tmp_path / "summary.md")
    assert carry_out([create(Fake(ROWS, rounds=1))], how, view(fails=("a2",)), Places()) == 1
    (found,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [found.get(key) for key in ("name", "tests", "failures")] == ["fencepost.fake", "3", "1"]
    assert (tmp_path / "summary.md").read_text() == (
        "### fake, seed 7: So it is.\n\n- **a2**: a2 1 7\n\n"
    )
    assert "a2 is done\n" in capsys.readouterr().out


def test_a_campaign_s_own_results_stay_where_its_files_cannot_be_written(tmp_path, capsys):
    made, how = create(Fake(ROWS, rounds=1)), How(junit=tmp_path, summary=tmp_path, json=True)
    with screen.muted(), pytest.raises(Crashed) as told:
        carry_out([made], how, view(fails=("a2",)), Places())
    assert str(told.value).count(f"{tmp_path} cannot be written: Is a directory") == 2
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["event"], last["exit_code"]) == ("result", 1)
    assert len(stored(made)) == len(ROWS)


def test_an_interrupt_stays_one_where_its_files_cannot_be_written(tmp_path, capsys):
    def interrupted(item):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out([create(Fake(ROWS))], How(junit=tmp_path), view(), Places(run=interrupted))
    assert f"--junit: {tmp_path} cannot be written" in capsys.readouterr().err


def test_they_are_written_too_where_it_is_interrupted(tmp_path, capsys):
    def interrupted(item):
        if item.row == "a2":
            raise KeyboardInterrupt
        return says(item, None, None)

    made = create(Fake(ROWS))
    with pytest.raises(KeyboardInterrupt):
        carry_out([made], How(junit=tmp_path / "junit.xml"), view(), Places(run=interrupted))
    done, ended = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (done.get("tests"), ended.get("errors")) == ("1", "1")
    said = capsys.readouterr().out
    assert f"resume with: fencepost bench --resume {made.folder.name}" in said


def test_a_program_is_told_a_line_an_item_and_what_came_of_it(capsys):
    with screen.muted():
        made = create(Fake(ROWS, rounds=1))
        carry_out([made], How(json=True), view(fails=("a2",)), Places())
    first, *rows, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["event"], first["kind"], first["rows"]) == ("started", "bench", 3)
    assert [(row["event"], row["row"]) for row in rows] == [("finished", row) for row in ROWS]
    assert (last["event"], last["exit_code"], last["rows"]["a2"]["state"]) == (
        "result", 1, "failure"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scheduler": "tcp://127.0.0.1:1"}, "--scheduler is for --engine dask"),
        ({"engine": "ray"}, "there is no engine 'ray'"),
        ({"engine": "dask"}, "--engine dask needs --scheduler ADDRESS"),
        (
            {"engine": "dask", "scheduler": "x", "parallel": 2},
            "leave --hosts, --remote, --par",
        ),
        ({"hosts": "hosts.toml", "parallel": 2}, "--parallel needs containers"),
    ],
)
def test_where_items_cannot_be_carried_out_so_it_is_said_before_anything_starts(options, said):
    with pytest.raises(BadArguments, match=said), How(**options).executor():
        raise AssertionError("it was started")


def test_without_options_there_is_one_lane_and_as_many_as_are_asked_for_with_them():
    with How().executor(2) as usual, How(parallel=3).executor(2) as asked:
        assert isinstance(usual, Clusters)
        assert (usual.lanes, asked.lanes) == (2, 3)
