"""A package brings one of each kind of thing, and every list, run, hunt, page and table has it.

Nothing in this repository is edited for it: so a new thing of ours is one file and its line in a
registry. The package is in toys.py; test_outside_*.py look at single kinds in depth.
"""

from __future__ import annotations

import io
import json
import os
import runpy
import subprocess
import sys
import tarfile
import threading
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from fencepost.checker.checkers import CHECKERS
from fencepost.harness.campaigns import matrix
from fencepost.harness.campaigns.suite import entries
from fencepost.harness.clients.shipped import archive_for
from fencepost.harness.cluster import machine
from fencepost.harness.command import app, screen
from fencepost.harness.hunting.hunts import described
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.spec import needs, reference
from fencepost.harness.spec.respec import respec
from fencepost.harness.spec.validation import validate
from fencepost.hunt.faults.registry import SIMULATED
from fencepost.hunt.models.registry import MODELS
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.schedule import Scheduled, draw
from fencepost.nemesis.targets import Layout
from fencepost.nemesis.trigger_draws import draws
from fencepost.report.pages import run as page
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES
from fencepost.workloads.scenarios.claims import CLAIMS
from fencepost.workloads.scenarios.registry import SUITES
from tests.harness.conftest import cluster, places, short  # noqa: F401  fixtures
from tests.harness.disturbed import SPEC, carried_out
from tests.packages import installed
from tests.toys import POINTS, TOYS

ROOT = Path(__file__).parents[1]
RENDER = page.render  # the fixture `short` skips it
REGISTRIES = (
    LOCKS, GUARDS, STORES, CHECKERS, CLAIMS, SUITES, FAMILIES, KINDS, MODELS, SIMULATED,
)  # fmt: skip


@pytest.fixture(autouse=True)
def toys(tmp_path, monkeypatch):
    """Install the package of toys."""
    site = tmp_path / "site-packages"
    installed(site, "toys", POINTS, TOYS)
    monkeypatch.syspath_prepend(site)
    for registry in REGISTRIES:
        registry.forget()
    screen.console.cache_clear()
    yield site
    for registry in REGISTRIES:
        registry.forget()
    for name in TOYS:
        sys.modules.pop(name, None)


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Runs the command line; its exit code and its output in one line."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("COLUMNS", "250")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", *words])
        screen.console.cache_clear()
        code = app.run()
        return code, " ".join(" ".join(capsys.readouterr()).split())

    return call


def spec(**changed):
    options = LOCKS["toy-lock"].read_options({})
    toys = {"guard": "toy-guard", "store": "toy-store", "nemesis": ("toy-fault",)}
    return replace(SPEC, lock="toy-lock", options=options, **{**toys, **changed})


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.group)
def test_each_thing_is_registered_after_ours(registry):
    ours = list(registry._ours)
    assert list(registry)[: len(ours)] == ours
    assert len(list(registry)) == len(ours) + len(POINTS[registry.group].splitlines())


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("locks",), "toy-lock toy-server x1"),
        (("locks",), "toy-elector toy-server x1"),
        (("locks", "toy-lock"), "toy-lock: a lock of wood"),
        (("defects",), "toy-defect The lock is of wood."),
        (("guards",), "toy-guard any lock toy-store accepts any write"),
        (("suite",), "toy-suite 1 runs: fencepost suite toy-suite"),
        (("nemesis", "list"), "toy-fault a worm eats at a server one, a node sawdust"),
    ],
)
def test_the_lists_of_the_command_line_have_it(run, words, shown):
    code, said = run(*words)
    assert code == 0 and shown in said


def test_the_doctor_looks_for_the_part_of_the_machine_that_its_fault_needs():
    *_, last = machine.of_faults()
    assert (last.ok, last.what) == (None, "toy-fault faults: a tree")
    assert last.how == "no tree, so no worm: plant one"


@pytest.mark.slow
def test_the_help_of_a_command_has_it(toys):
    """In a process of its own: help is made once, when a command is imported."""
    paths = os.pathsep.join((str(ROOT / "src"), str(toys)))
    done = subprocess.run(
        [sys.executable, "-m", "fencepost", "suite", "--help"],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}, check=True,
    )  # fmt: skip
    assert "toy-suite" in done.stdout


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        (("test", "redis", "--guard", "thing"), ", toy-guard"),
        (("test", "redis", "--guard", "toy-guard", "--store", "thing"), "one of: toy-store"),
        (("test", "redis", "--until", "thing"), ", toy-checker"),
        (("test", "redis", "--nemesis", "thing"), ", toy-fault"),
        (("test", "thing"), ", toy-lock"),
        (("hunt", "redis", "--goal", "thing"), ", toy-checker"),
        (("hunt", "redis", "--faults", "thing"), ", toy-fault"),
        (("test", "zookeeper", "--server", "thing=1"), ", toy-server"),
        (("hunt", "redis", "--server", "redis=valkey"), ", toy-model"),
        (("suite", "thing"), ", toy-suite"),
    ],
)
def test_an_error_that_names_the_choices_has_it(run, words, choices):
    code, said = run(*words)
    assert code == 254 and choices in said


def test_a_test_of_it_is_valid_and_can_be_read_back():
    one = validate(spec(time_s=5.0))
    described = json.loads(json.dumps(one.to_json()))
    assert "toy-checker" in described["checkers"]
    assert described["lockless"] is True
    assert respec(described) == one
    assert "lockless" not in spec(guard="none", store="").to_json()
    assert spec(store="").stored_in == "toy-store"
    assert one.servers == ["toy-server-1"]


def test_the_end_of_a_run_and_aim_have_its_faults_as_it_draws_them():
    at = Layout(["toy-server-1"], ["client-1"], ttl_s=1.0, restart_s=0.0)
    *_, last_but_one, last = draw(("toy-fault",), 1, 20.0, 2.0, at)
    assert (last.at_s, last.duration_s, last.targets) == (19.0, 0.5, ["holder"])
    assert (last_but_one.at_s, last_but_one.targets) == (18.0, ["holder"])
    during_holds = [
        one for one in islice(draws(("toy-fault",), 1, at), 40) if one.kind in ("hold", "edge")
    ]
    assert len(during_holds) > 5
    assert {(one.strike[0].targets[0], one.lasts_s) for one in during_holds} == {("holder", 0.125)}


def test_a_matrix_of_all_locks_has_it_unless_it_is_not_sound():
    assert "toy-elector" in matrix.usual_locks()
    assert "toy-lock" not in matrix.usual_locks()  # it is made of one that is broken on purpose
    assert "toy-lock" in LOCKS


def test_a_suite_of_it_is_planned_with_all_that_it_names():
    (item,) = entries("toy-suite", 7)
    one = item.spec
    assert (one.lock, one.guard, one.store, one.nemesis) == (
        "toy-lock", "toy-guard", "toy-store", ("toy-fault",),
    )  # fmt: skip
    assert item.expected == {"toy-checker": True}
    assert item.entry.claim == "T1"


def test_a_run_in_memory_is_judged_and_its_report_shows_it(cluster):  # noqa: F811  fixture
    asked = spec(time_s=0.3)
    cluster.up(needs.nodes([asked]))
    worm = Scheduled(0.05, 0.1, "toy-fault", ["toy-server-1"], {"words": "a worm eats"})
    ended = carried_out(cluster, asked, [worm])
    assert ended.error is None
    checkers = ended.results["checkers"]
    assert checkers["toy-checker"]["summary"] == "A client let go."
    assert checkers["faults"]["valid"] is True
    assert "stale writes (guard toy-guard)" in checkers["resource"]["summary"]
    said = RENDER(ended.folder).read_text()
    for words in ("toy-lock", "toy-guard", "toy-store", "No client ever lets go."):
        assert words in said
    assert "a worm eats" in said


class Elections:
    """Replaces the service of a cluster in memory: each hold is a reign of a toy elector."""

    def __init__(self):
        self._reigns = {}

    def acquire(self, lock, hold, ttl_ns):
        env = SimpleNamespace(
            now=time.monotonic_ns, random=Random(hold), identity=hold,
            lost=lambda secret, why: None,
            background=lambda work: threading.Thread(target=work, daemon=True).start(),
        )  # fmt: skip
        elector = LOCKS["toy-elector"].make(env, [], {})
        self._reigns[hold] = elector, elector.acquire(lock, ttl_ns)
        return time.monotonic_ns() + ttl_ns

    def release(self, lock, hold):
        elector, grant = self._reigns.pop(hold)
        elector.release(grant)
        return True


def test_a_run_in_memory_of_its_elector_has_two_leaders(cluster, monkeypatch):  # noqa: F811
    elections = Elections()
    for name in ("acquire", "release"):
        monkeypatch.setattr(cluster.service, name, getattr(elections, name))
    asked = replace(SPEC, lock="toy-elector", options={}, time_s=0.5, hold="20ms", think="0..1ms")
    cluster.up(needs.nodes([asked]))
    ended = carried_out(cluster, asked, [])
    assert ended.error is None
    found = ended.results["checkers"]["leadership"]
    assert found["valid"] is False and len(found["evidence"][0]["holds"]) == 2
    said = RENDER(ended.folder).read_text()
    assert "toy-elector" in said and "Two leaders worked at once" in said


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        (b"toy: burnt", False),
        (b"toy: my drawer is gone", True),
        (b"toy: a drawer squeaks", True),
        (b"6379 # Out Of Memory allocating 7 bytes", False),
    ],
)
def test_the_log_of_its_server_is_searched_for_its_crash_lines(cluster, log, kept):  # noqa: F811
    asked = spec(time_s=0.2, nemesis=("kill",))
    cluster.up(needs.nodes([asked]))
    cluster.logs["toy-server-1"] = log
    ended = carried_out(cluster, asked, [Scheduled(0.05, 0.05, "kill", ["toy-server-1"], {})])
    assert ended.error is None
    verdict = ended.results["checkers"]["server-log"]
    assert verdict["valid"] is kept
    assert ("Explained by a fault of the run" in verdict["summary"]) is (b"gone" in log)


def test_what_a_client_needs_of_it_is_sent_to_its_node():
    with tarfile.open(fileobj=io.BytesIO(archive_for("redis", "toy-guard", "toy-store"))) as sent:
        names = set(sent.getnames())
    assert {"toy_guard.py", "toy_store.py"} <= names
    assert "toy_lock.py" not in names
    points = {name for name in names if name.endswith("entry_points.txt")}
    assert len(points) == 2


def test_a_hunt_searches_for_its_checker_s_violation_under_its_guard(run, tmp_path):
    setting = described("toy-lock", {}, {"guard": "toy-guard"}).setting
    assert "toy-checker" in setting.goals and "toy-fault" in setting.faults
    assert (setting.model, setting.store) == ("toy-model", "toy-store")
    words = ("--guard", "toy-guard", "--faults", "toy-fault", "--goal", "toy-checker")
    code, said = run("hunt", "toy-lock", *words, "--seed", "1", "--processes", "1")
    assert code == 1 and "a client let go" in said
    (report,) = (tmp_path / "results").glob("hunt-toy-lock/*Z/report.html")
    assert "No client ever lets go." in report.read_text()


def test_a_hunt_knows_what_its_servers_keep(monkeypatch):
    def faults(**settings):
        return described("toy-lock", {}, settings).setting.faults

    assert "power" in faults() and "power" in faults(persistence="always")
    assert "power" not in faults(persistence="everysec")
    assert reference.servers(spec()) == "one Redis server"
    monkeypatch.setitem(KINDS["toy-server"].persistence, "none", "nothing")
    assert reference.servers(spec()) == "one Redis server without persistence"
    assert "power" not in faults()


def test_a_hunt_finds_two_leaders_of_an_elector_that_asks_nobody(run, tmp_path):
    words = ("--goal", "leadership", "--faults", "pause", "--seed", "1", "--processes", "1")
    code, said = run("hunt", "toy-elector", *words)
    assert code == 1 and "leadership is violated" in said
    (report,) = (tmp_path / "results").glob("hunt-toy-elector/*Z/report.html")
    assert "toy-elector" in report.read_text()


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("locks", "| `toy-lock` | 1 toy-server |"),
        ("locks", "| `toy-elector` | 1 toy-server |"),
        ("guards", "| `toy-guard` | any lock | `toy-store` | accepts any write"),
        ("defect-catalogue", "toy_defect.py) | The lock is of wood. | A lease is kept. |"),
        ("defect-results", "| toy-defect | not played yet | not played yet | not played yet |"),
        ("stores", "| `toy-store` | a box of wood |"),
        ("suites", "| `toy-suite` | Wooden locks under woodworm. |"),
        ("faults", "| `toy-fault` | a worm eats at a server | `one`, a node |"),
        (
            "claims",
            "| T1 | Wooden locks hold. | `toy-checker` T | a carpenter | toy-suite: `worm` |",
        ),
        ("outcomes:suites", "| T1 | toy-suite: `worm` | toy-guard | all T | no run kept yet |"),
    ],
)
def test_the_tables_of_the_docs_have_it(table, row):
    written = runpy.run_path(str(ROOT / "tools" / "docs.py"))["written"]
    assert row in written(f"<!-- table: {table} -->\n<!-- end -->\n")


def test_the_measured_runs_of_ours_stay_where_a_package_adds_a_checker():
    written = runpy.run_path(str(ROOT / "tools" / "docs.py"))["written"]
    rows = written("<!-- table: outcomes:suites -->\n<!-- end -->\n").splitlines()
    controls = [row for row in rows if row.startswith("| control |")]
    assert controls and all("as expected, 1 of 1 runs" in row for row in controls)
