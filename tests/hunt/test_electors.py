"""`fencepost hunt` plays electors: it finds two at work at once, and does not accuse sound ones."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from fencepost.harness.command import app
from fencepost.harness.hunting import hunts
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.story.story import numbered
from fencepost.workloads.electors import kubernetes_client
from tests.hunt.sound import assert_not_accused

pytestmark = pytest.mark.slow

# A process that hunts imports pydantic first, as typer does in the command line.
if find_spec("kubernetes") is not None:
    for module in kubernetes_client.ELECTOR.loads:
        import_module(module)

ELECTORS = Path(__file__).parent / "electors.py"
needs_kubernetes = pytest.mark.skipif(
    find_spec("kubernetes") is None, reason="the library kubernetes is not installed"
)


def hunt(elector, budget="60s", seed=1, **more):
    return hunts.described(
        f"{ELECTORS}:{elector}", {}, {"seed": seed}, servers="kubernetes", budget=budget, **more
    )


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line; return its exit code and its output."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fencepost", *arguments])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def undisturbed(asked):
    return Run(asked.setting, Schedule(), table(asked.setting)).execute()


def ops(run, f, type="ok"):
    return [row for row in run.rows if row[3] == f and row[2] == type]


def test_without_faults_clients_lead_one_after_the_other_and_beat():
    ran = undisturbed(hunt("Sound"))
    leads = [row[6] for row in ops(ran, "acquire")]
    assert set(leads) == {"client-1", "client-2"}
    assert len(ops(ran, "write")) >= 20
    assert len(ops(ran, "release")) == len(leads) and not ops(ran, "lost", "info")
    assert ran.came_back


def test_a_candidate_that_watches_leads_after_the_other_one_has_resigned():
    ran = undisturbed(hunt("Watches"))
    assert {row[6] for row in ops(ran, "acquire")} == {"client-1", "client-2"}
    assert ran.came_back


def test_pauses_are_usual_for_an_elector_that_names_deadlines_only():
    assert "pause" in hunt("Sound").setting.faults
    assert "pause" not in hunt("Told").setting.faults
    assert "pause" in hunt("Told", faults="pause").setting.faults


@pytest.mark.parametrize("elector", ["Sound", "Told", "Async", "Watches"])
def test_a_sound_elector_is_not_accused(elector):
    assert_not_accused(hunt(elector).setting, 100)


def test_an_elector_that_raises_once_it_leads_is_not_accused():
    assert_not_accused(hunt("Raises").setting, 100)


def test_work_that_ends_with_the_callback_only_outlives_a_run_that_raises():
    asked = hunt("Raises")
    assert "leadership" not in asked.setting.goals
    asked = hunts.described(
        f"{ELECTORS}:Raises", {}, {"seed": 1, "stops": "callback"}, servers="kubernetes",
        budget="300s",
    )  # fmt: skip
    assert {"leadership", "lease_exclusion"} <= set(asked.setting.goals)
    assert "--stops callback" in asked.again()
    _, found = asked.carry_out(processes=1)
    assert found is not None and set(found.broken) & {"leadership", "lease_exclusion"}


def test_a_sound_elector_that_stops_in_time_is_not_accused_if_only_its_callback_ends_the_work():
    asked = hunts.described(
        f"{ELECTORS}:Told", {}, {"seed": 1, "stops": "callback"}, servers="kubernetes"
    )
    assert "pause" not in asked.setting.faults
    assert_not_accused(asked.setting, 100)


@pytest.mark.parametrize(("stops", "works"), [("exit", True), ("checked", False)])
def test_a_client_that_checks_asks_its_elector_before_each_beat(stops, works):
    asked = hunts.described(
        f"{ELECTORS}:Denies", {}, {"seed": 1, "stops": stops}, servers="kubernetes"
    )
    assert bool(ops(undisturbed(asked), "write")) == works


def test_what_ends_the_work_is_for_electors(run):
    code, said = run("hunt", "redlock", "--stops", "callback")
    assert code == 254 and "--stops is for electors, and redlock is a lock" in said
    code, said = run("hunt", "kubernetes-client", "--stops", "never")
    assert code == 254 and "exit, checked, callback" in said


@pytest.mark.skipif(
    find_spec("kubernetes") is None or find_spec("aiohttp") is None,
    reason="the library kubernetes or aiohttp is not installed",
)
def test_an_elector_on_aiohttp_leads_in_a_hunt():
    asked = hunts.described("kubernetes-aio", {}, {"seed": 1})
    assert ops(undisturbed(asked), "write")


def test_an_elector_in_an_event_loop_whose_requests_hang_is_found():
    _, found = hunt("AsyncHangs", seed=5).carry_out(processes=1)
    assert found is not None and "lease_exclusion" in found.broken


def test_an_elector_whose_requests_hang_works_beside_the_next_leader():
    _, found = hunt("Hangs", seed=5).carry_out(processes=1)
    assert found is not None
    assert next(iter(found.broken)) == "lease_exclusion"
    story = "\n".join(numbered(found.story))
    assert "begins to lead" in story
    assert "its elector has not called stopped" in story


def test_a_killed_leader_is_no_longer_at_work():
    assert_not_accused(hunt("Told", faults="kill").setting, 100)


@pytest.mark.parametrize(
    ("elector", "words"),
    [
        ("StartsTwice", "started was called twice in one run"),
        ("StopsFirst", "stopped was called before started"),
        ("Returns", "run returned while it leads"),
        ("CallsWrongly", "started takes a token and a deadline"),
        ("NamesTheWallClock", "time.monotonic()"),
        ("RaisesAtOnce", "no candidate was elected in a run without faults: run raised"),
        ("ReturnsAtOnce", "no candidate was elected in a run without faults: run returned"),
        ("Exits", "lease_duration must be greater than renew_deadline"),
    ],
)
def test_a_bug_of_an_elector_ends_the_hunt_with_a_sentence(run, elector, words):
    asked = ("hunt", f"{ELECTORS}:{elector}", "--servers", "kubernetes", "--seed", "1")
    code, said = run(*asked, "--processes", "1", "--budget", "5s")
    assert code == 255
    (line,) = [line for line in said.splitlines() if line.startswith("fencepost: ")]
    assert words in line and elector in line


def test_a_counterexample_of_an_elector_is_not_replayed_on_real_servers(run):
    asked = (f"{ELECTORS}:Sound", "--servers", "kubernetes", "--seed", "1")
    code, said = run("hunt", *asked, "--confirm")
    assert code == 254
    assert "fencepost test" in said and "leave --confirm out" in said


@needs_kubernetes
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_official_client_works_beside_the_next_leader(seed):
    asked = hunts.described("kubernetes-client", {}, {"seed": seed}, budget="60s")
    _, found = asked.carry_out(processes=1)
    assert found is not None
    assert next(iter(found.broken)) == "lease_exclusion"
    assert "its elector has not called stopped" in "\n".join(numbered(found.story))


@needs_kubernetes
@pytest.mark.parametrize("resource", ["lease", "configmap"])
def test_the_official_client_elects_without_faults(resource):
    asked = hunts.described("kubernetes-client", {"resource": resource}, {"seed": 1})
    ran = undisturbed(asked)
    assert ran.came_back
    assert {row[6] for row in ops(ran, "acquire")} == {"client-1", "client-2"}


@needs_kubernetes
def test_numbers_that_the_official_client_refuses_are_told(run):
    code, said = run(
        "hunt", "kubernetes-client", "-o", "renew_deadline_ms=4500", "--seed", "1", "--budget", "5s"
    )
    assert code == 255
    assert "lease_duration must be greater than renew_deadline" in said


@pytest.mark.skipif(find_spec("kubernetes") is not None, reason="the library is installed")
def test_without_the_library_the_hunt_says_what_to_install(run):
    code, said = run("hunt", "kubernetes-client", "--seed", "1")
    assert code == 254
    assert "kubernetes is not installed here: pip install kubernetes" in said
