"""Known defects: which scenarios run, which results count as reproduced, and which are kept."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from fencepost.checker.history.history import History
from fencepost.checker.history.op import Op
from fencepost.checker.verdict import Verdict
from fencepost.harness.campaigns import campaign, engine, executors
from fencepost.harness.campaigns import item as items
from fencepost.harness.campaigns import track_record as record
from fencepost.harness.campaigns.item import Hushed
from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.results import results
from fencepost.report import known_defects
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.defects import DEFECTS, ByLeases, waits_longer

SCRIPTED = "etcd-expired-waiter"
NOTE = "The schedule was not carried out: step 9: it was answered fail"


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path


class Runs:
    """Replaces runs: each returns the next of `verdicts`, and the last one from then on.

    {} means the expected verdicts. `wrong` are a run's notes, `proved` is whether its faults were.
    """

    def __init__(self, *verdicts, wrong=(), proved=True):
        self.left, self.ran, self.wrong, self.proved = list(verdicts), [], list(wrong), proved

    def __call__(self, spec, cluster=None, progress=None, scenario=None, schedule=None):
        self.ran.append(spec.name)
        changed = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(changed, Exception):
            raise changed
        run = results.create(spec.name)
        results.write(run / "test.json", spec.to_json() | {"versions": {"etcd": "3.4", "x": "1"}})
        said = dict(scenario.expected if scenario else {}) | changed
        verdicts = {name: Verdict(valid, f"{name}: {valid}") for name, valid in said.items()}
        verdicts["faults"] = Verdict(self.proved or "unknown", "No receipt.")
        if self.wrong:
            verdicts["run"] = Verdict("unknown", self.wrong[0])
        return Outcome(run, True, verdicts, {"run_notes": self.wrong})


def entry(name):
    return record.entries([name], 7)[0]


class Here:
    """An executor whose runs are these, on this cluster."""

    lanes, up_s = 1, 0.0

    def __init__(self, cluster):
        self.cluster, self.ups = cluster, 0

    @contextmanager
    def place(self, items):
        self.ups += 1
        yield lambda item: item.does(item, self.cluster, Hushed())


def play(runs, name=SCRIPTED, cluster="a cluster"):
    made = campaign.create(record.Plan(7, (name,)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "run", runs)
        assert engine.carry_out([made], Here(cluster), lambda *line: None)
    return known_defects.read(made.folder)[0]


def test_every_defect_names_a_lock_and_its_scenario_and_no_two_rows_have_one_key():
    found = record.entries([], 7)
    assert len({one.key for one in found}) == len(found) > len(DEFECTS)
    assert {one.defect.lock for one in found} <= set(LOCKS)
    for one in found:
        if one.shown is not None:
            assert one.command.endswith(f"--only {one.shown.name}")
            assert (one.item.spec.lock, one.shown.name) == (one.defect.lock, one.way.scenario)


def test_a_defect_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(BadArguments, match="no defect 'nothing'; choose one of: etcd-expired"):
        record.entries(["nothing"], 7)


def test_a_scenario_with_the_expected_outcome_reproduces_its_defect():
    row = play(Runs({}))
    assert (row["outcome"], row["said"]) == ("seen", "linearizable: False")
    assert row["versions"] == {"etcd": "3.4"} and "tries" not in row
    assert row["issue"].endswith("/11456")


def test_a_verdict_other_than_expected_shows_that_the_defect_is_fixed():
    row = play(Runs({"linearizable": True}))
    assert row["outcome"] == "not seen"
    assert row["said"].startswith("linearizable is True, False was expected")


def test_a_step_that_always_differs_is_not_reproduced_and_one_difference_is_retried():
    runs = Runs({}, wrong=[NOTE])
    assert (play(runs)["outcome"], len(runs.ran)) == ("not seen", record.TRIES)

    class Once(Runs):
        def __call__(self, *given):
            self.wrong = [] if self.ran else [NOTE]
            return super().__call__(*given)

    assert play(Once({}))["tries"] == 2


@pytest.mark.parametrize(
    "runs",
    [
        Runs({}, proved=False),
        Runs({}, wrong=["client-1 did not come to rest."]),
        Runs(Crashed("etcd-1 did not come up")),
    ],
)
def test_a_crashed_run_gives_no_result_about_the_software(runs):
    row = play(runs)
    assert row["outcome"] == "not played" and row["said"]


def test_where_verdicts_do_not_show_a_defect_the_history_must(monkeypatch):
    histories = iter([(1, 1), (1, 9)])
    monkeypatch.setattr(record, "read", lambda path: asked(*next(histories)))
    assert play(Runs({}), "kazoo-timeout")["outcome"] == "not seen"
    row = play(Runs({}), "kazoo-timeout")
    assert (row["outcome"], row["said"]) == ("seen", "acquire of client-2 took 9.0 s")


def asked(*seconds):
    ops, now = [], 0
    for took in seconds:
        for type in ("invoke", "ok"):
            ops.append(Op(len(ops), now, 1, type, "acquire", {"lock": "orders"}, node="client-2"))
            now += took * 10**9
    return History(ops)


def test_an_op_within_its_timeout_reproduces_nothing():
    assert waits_longer("client-2", "acquire", 3)(asked(1, 2)) == ""
    assert waits_longer("client-1", "acquire", 3)(asked(1, 9)) == ""


class Counting:
    """A cluster whose etcd has this number of leases; it does not answer before it is up."""

    def __init__(self, leases):
        self.leases, self.asked = leases, 0

    def remote(self, node):
        return SimpleNamespace(run=self.run)

    def run(self, argv, check):
        self.asked += 1
        out = json.dumps({"leases": [{"id": n} for n in range(self.leases)]})
        return SimpleNamespace(code=int(self.asked == 1), out=out)


@pytest.mark.parametrize(("leases", "outcome"), [(50, "not seen"), (51, "seen")])
def test_leaked_leases_are_counted_while_clients_work(monkeypatch, leases, outcome):
    monkeypatch.setattr(record, "_COUNT_EVERY_S", 0.001)
    cluster = Counting(leases)

    class Working(Runs):
        def __call__(self, spec, *given):
            assert given[2] is None and not spec.nemesis
            while cluster.asked < 3:
                pass
            return super().__call__(spec, *given)

    row = play(Working({}), "etcd3gw-leases", cluster)
    assert row["outcome"] == outcome
    assert row["said"] == f"up to {leases} leases at a time, for 5 clients and one lock"
    assert row["command"] == "fencepost track-record --only etcd3gw-leases"


def test_an_unknown_number_of_leases_gives_no_result(monkeypatch):
    monkeypatch.setattr(record, "_COUNT_EVERY_S", 60)
    assert play(Runs({}), "aetcd-leases", Counting(0))["outcome"] == "not played"
    assert all(isinstance(way, ByLeases) for way in entry("aetcd-leases").defect.ways)


def test_kept_results_replace_rows_of_this_run_and_keep_the_others(tmp_path):
    path = tmp_path / "kept.json"
    waiter, timeout = play(Runs({})), play(Runs({"linearizable": True}))
    other = {**waiter, "key": "kazoo-timeout/real servers", "date": "2026-01-02"}
    gone = {**waiter, "key": "of-yore/real servers"}
    path.write_text(json.dumps([other, gone]))
    record.keep(path, [waiter])
    kept = json.loads(path.read_text())
    assert [row["key"] for row in kept] == [waiter["key"], other["key"]]
    assert "run" not in kept[0] and kept[0]["last_seen"] == waiter["date"]
    record.keep(path, [{**timeout, "date": "2030-01-01"}])
    (changed, _) = json.loads(path.read_text())
    assert (changed["outcome"], changed["last_seen"]) == ("not seen", waiter["date"])
    record.keep(path, [{**waiter, "outcome": "not played", "said": "it died"}])
    assert json.loads(path.read_text())[0] == changed


@pytest.fixture
def track_record(monkeypatch, capsys):
    """Run the command with fake runs."""
    ups = []

    @contextmanager
    def up(specs, *_):
        ups.append(len(specs))
        yield "a cluster"

    def call(runs, *words):
        monkeypatch.setattr(executors, "cluster_for", up)
        monkeypatch.setattr(items, "run", runs)
        monkeypatch.setattr(sys, "argv", ["fencepost", "track-record", *words])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err, ups

    return call


def test_the_exit_code_says_whether_every_defect_is_as_recorded(track_record, tmp_path):
    only = ("--only", "curator", "--only", "python-redis-lock", "--keep", str(tmp_path / "kept"))
    code, said, ups = track_record(Runs({}), *only)
    assert code == 0 and ups == [2]
    assert "curator-no-deadline, real servers: seen  lease_exclusion: False" in said
    code, said, _ = track_record(Runs({"lease_exclusion": True}), *only)
    assert code == 1 and "not seen" in said
    code, said, ups = track_record(Runs(Crashed("it is down")), *only)
    assert code == 2 and "not played  it is down" in said
    # Leftovers of a failed scenario must not reach the next one.
    assert ups == [2, 2, 2, 2]
    assert len(json.loads((tmp_path / "kept").read_text())) == 2


def test_a_file_that_cannot_be_written_is_refused_before_any_run(track_record, tmp_path):
    (tmp_path / "other").write_text("{}")
    (tmp_path / "odd").write_text('[{"key": []}]')
    runs = Runs({})
    no_list = "not a list of rows"
    for path, message in (("other", no_list), ("odd", no_list), ("nowhere/kept", "does not exist")):
        code, said, ups = track_record(runs, "--keep", str(tmp_path / path))
        assert code == 254 and message in " ".join(said.split())
    assert runs.ran == ups == []
