"""A package brings one of each kind of thing, and every list, run, hunt, page and table has it.

Nothing in this repository is edited for it: so a new thing of ours is one file and its line in a
registry. The package's modules are TOYS; test_outside_*.py look at single kinds in depth.
"""

from __future__ import annotations

import io
import json
import os
import runpy
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.checker.checkers import CHECKERS
from fencepost.harness.campaigns import matrix
from fencepost.harness.campaigns.suite import entries
from fencepost.harness.clients.shipped import archive_for
from fencepost.harness.command import app, screen
from fencepost.harness.hunting.hunts import described
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.spec import needs, reference
from fencepost.harness.spec.respec import respec
from fencepost.harness.spec.validation import validate
from fencepost.hunt.faults.registry import SIMULATED
from fencepost.hunt.models.registry import MODELS
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.schedule import Scheduled
from fencepost.report.pages import run as page
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES
from fencepost.workloads.scenarios.claims import CLAIMS
from fencepost.workloads.scenarios.registry import SUITES
from tests.harness.conftest import cluster, places, short  # noqa: F401  fixtures
from tests.harness.disturbed import SPEC, carried_out
from tests.packages import installed

ROOT = Path(__file__).parents[1]
RENDER = page.render  # the fixture `short` skips it
REGISTRIES = (
    LOCKS, GUARDS, STORES, CHECKERS, CLAIMS, SUITES, FAMILIES, KINDS, MODELS, SIMULATED,
)  # fmt: skip

TOYS = {
    "toy_lock": """
from dataclasses import replace
from fencepost.workloads.locks.broken import NO_OWNER_CHECK
LOCK = replace(NO_OWNER_CHECK, name="toy-lock", what="a lock of wood", kind="toy-server")
""",
    "toy_elector": """
import threading
from fencepost.plugins import ElectorLock, LockType

class Scout:
    def __init__(self, servers, **options):
        self._over = threading.Event()

    def run(self, name, identity, ttl, started, stopped):
        started()
        self._over.wait()
        stopped()

    def resign(self):
        self._over.set()

ELECTOR = LockType(
    name="toy-elector", what="an elector of wood, which asks nobody", kind="toy-server", servers=1,
    make=lambda env, nodes, options: ElectorLock("toy-elector", Scout, env, nodes, options),
    extends=False, elector=True,
)
""",
    "toy_guard": """
from fencepost.plugins import Guard, Rule
GUARD = Guard(
    "toy-guard", "accepts any write that is asked for politely",
    rules={"toy": Rule("local please = true")}, lockless=True,
)
""",
    "toy_store": """
from fencepost.plugins import Store
from fencepost.workloads.resources.redis_register import RedisRegister
STORE = Store("toy-store", "a box of wood", RedisRegister, kind="redis", language="toy")
""",
    "toy_checker": """
from fencepost.plugins import Checker, Verdict, of_history

def check(history, test):
    releases = [op for op in history.clients() if op.f == "release"]
    rows = [{"what": "a client let go.", "time_ns": op.time} for op in releases[:1]]
    return Verdict(not releases, "A client let go." if releases else "All held on.", rows)

CHECKER = Checker(
    "toy-checker", "No client ever lets go.", ("service",), of_history(check), "toy",
    control=None, goal=True,
)
""",
    "toy_claim": """
from fencepost.workloads.scenarios.claim import Claim
CLAIM = Claim("T1", "Wooden locks hold.", source="a carpenter", expected="`toy-checker` T")
""",
    "toy_suite": """
from fencepost.plugins import Suite, TimedRun
SUITE = Suite("toy-suite", "Wooden locks under woodworm.", "toy-lock", (
    TimedRun(
        "worm", "A worm eats at a server.", {"toy-checker": True}, claims=("T1",),
        source="a carpenter", guard="toy-guard",
        settings={"store": "toy-store", "nemesis": ("toy-fault",), "time_s": 5.0},
    ),
))
""",
    "toy_fault": """
from fencepost.plugins import Colour, Drawn, Family, Receipt, pick

class Worm:
    def inject(self, fault):
        return Receipt(True, "sawdust", {})

    def heal(self, fault):
        return Receipt(True, "sawdust", {})

FAMILY = Family(
    name="toy-fault", what="a worm eats at a server", receipt="sawdust",
    make=lambda site, chains: Worm(),
    draw=lambda random, at, asked: [Drawn(pick(random, at, asked.target or "one"), {})],
    describe=lambda targets, arguments: f"a worm eats at {targets[0]}",
    targets=("one",), impairs=lambda targets, arguments: [], forgets=False,
    colour=Colour("#123456", "#fedcba"),
)
""",
    "toy_server": """
from dataclasses import replace
from fencepost.harness.servers.redis import KIND as REDIS
KIND = replace(
    REDIS, name="toy-server", module=__name__, model="toy-model",
    persistence={"none": "power", "always": "power"},
    crash_lines=(r"toy: (?:splintered|burnt)",), loss_lines=(r"toy: my drawer is gone",),
)
""",
    "toy_model": """
from dataclasses import replace
from fencepost.hunt.models.redis.model import MODEL as REDIS
from fencepost.plugins import ServerModel
assert isinstance(REDIS, ServerModel)
MODEL = replace(REDIS, name="toy-model", stores={"toy-store": REDIS.stores["redis"]})
""",
    "toy_simulated": """
from fencepost.plugins import Action, Simulated

def inject(run, event):
    run.faults.begin("toy-fault", ["toy-server-1"], {}, "a worm eats", lambda: None, 1)
    return True

SIMULATED = Simulated("toy-fault", lambda setting: [Action("toy-fault", "server", inject)])
""",
}
POINTS = {
    "fencepost.locks": "toy-lock = toy_lock:LOCK\ntoy-elector = toy_elector:ELECTOR",
    "fencepost.guards": "toy-guard = toy_guard:GUARD",
    "fencepost.stores": "toy-store = toy_store:STORE",
    "fencepost.checkers": "toy-checker = toy_checker:CHECKER",
    "fencepost.claims": "T1 = toy_claim:CLAIM",
    "fencepost.suites": "toy-suite = toy_suite:SUITE",
    "fencepost.faults": "toy-fault = toy_fault:FAMILY",
    "fencepost.servers": "toy-server = toy_server:KIND",
    "fencepost.models": "toy-model = toy_model:MODEL",
    "fencepost.simulated_faults": "toy-fault = toy_simulated:SIMULATED",
}


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
        (("guards",), "toy-guard any lock toy-store accepts any write"),
        (("suite",), "toy-suite 1 runs: fencepost suite toy-suite"),
        (("nemesis", "list"), "toy-fault a worm eats at a server one, a node sawdust"),
    ],
)
def test_the_lists_of_the_command_line_have_it(run, words, shown):
    code, said = run(*words)
    assert code == 0 and shown in said


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
