"""A third-party package adds a family of faults with one file."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from random import Random

import pytest

from fencepost.checker.facts.faults import faults
from fencepost.checker.history.history import History, Op
from fencepost.harness.campaigns.matrix import plan
from fencepost.harness.cluster import healing
from fencepost.harness.command import nemesis as command
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.server_fleet import needs_of
from fencepost.harness.judge.judge import judge
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.nemesis.director import Director
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.fault_spec import parse
from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.schedule import draw, from_rows
from fencepost.nemesis.targets import Layout
from fencepost.workloads.locks.registry import LOCKS

ROOT = Path(__file__).parents[1]
SERVERS, CLIENTS = ["redis-1", "redis-2"], ["client-1"]
LAYOUT = Layout(SERVERS, CLIENTS, ttl_s=2.0, restart_s=0.0, kind=KINDS["redis"])

QUAKE = '''
"""Quakes: a server's machine shakes."""

from functools import partial

from fencepost.nemesis.family import Colour, Column, Family
from fencepost.nemesis.nemesis import Leftover, Receipt
from fencepost.nemesis.targets import Drawn, pick

class Quake:
    def __init__(self, site):
        self.site = site

    def inject(self, fault):
        said = [self.site.remote(node).run(["shake", "on"]).out for node in fault.targets]
        return Receipt(all(word == "shaking" for word in said), "the seismograph", {})

    def heal(self, fault):
        said = [self.site.remote(node).run(["shake", "off"]).out for node in fault.targets]
        return Receipt(all(word == "still" for word in said), "the seismograph", {})

def draw(random, at, asked):
    magnitude = random.randint(1, 9) if asked.variant != "strong" else 9
    return [Drawn(pick(random, at, asked.target or "one"), {"magnitude": magnitude})]

def validate(at, targets, arguments):
    if not 1 <= arguments.get("magnitude", 0) <= 9:
        raise ValueError("a quake needs a magnitude from 1 to 9")

def leftovers(remote, server):
    if remote.run(["shake", "show"]).out != "shaking":
        return []
    return [Leftover("it shakes", "held it still", partial(remote.run, ["shake", "off"]))]

FAMILY = Family(
    name="quake",
    what="a server's machine shakes",
    receipt="the seismograph on the node",
    make=lambda site, chains: Quake(site),
    draw=draw,
    describe=lambda targets, arguments: f"{targets[0]} shakes at {arguments['magnitude']}",
    targets=("one",),
    variants=("strong",),
    validate=validate,
    clashes=lambda mine, other, at: "how" in other.arguments,
    needs={"DISK": "small", "FOUNDATION": "loose"},
    leftovers=leftovers,
    files=("/run/fencepost/quake",),
    impairs=lambda targets, arguments: targets[:1],
    forgets=True,
    colour=Colour("#123456", "#fedcba"),
    columns=(Column("quake", "earthquake", "Under earthquakes", 9),),
)
'''


@pytest.fixture(autouse=True)
def quake(tmp_path, monkeypatch):
    """Lay out a package as pip does: its module and its metadata in a folder on sys.path."""
    site = tmp_path / "site-packages"
    info = site / "quakes-1.2.dist-info"
    info.mkdir(parents=True)
    (site / "quakes.py").write_text(QUAKE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quakes\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[fencepost.faults]\nquake = quakes:FAMILY\n")
    monkeypatch.syspath_prepend(site)
    FAMILIES.forget()
    yield FAMILIES["quake"]
    FAMILIES.forget()
    sys.modules.pop("quakes", None)


class Node:
    """A node without a server that records whether it shakes."""

    def __init__(self, shaking=False):
        self.shaking = shaking
        self.ran = []

    def run(self, argv, *, timeout_s=10.0, check=True):
        self.ran.append(list(argv))
        if argv[0] == "shake" and argv[1] != "show":
            self.shaking = argv[1] == "on"
        out = ("shaking" if self.shaking else "still") if argv[0] == "shake" else ""
        return type("Result", (), {"code": 0, "out": out, "err": ""})()


class Site:
    servers, clients = SERVERS, CLIENTS

    def __init__(self):
        self.nodes = {name: Node() for name in (*SERVERS, *CLIENTS)}

    def remote(self, node):
        return self.nodes[node]


def test_a_matrix_has_its_column_and_a_report_its_words():
    asked = plan(("redis",), (), ("none",), 7)
    assert asked.faults[-2:] == ("quake", "all")
    told = asked.to_json()["columns"]["quake"]
    assert told == {"title": "earthquake", "sentence": "Under earthquakes"}


def test_the_list_of_families_shows_it(capsys):
    command.list_families()
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("quake")]
    assert "a server's machine shakes" in row


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("quake:client-1", "the test has no 'client-1'; choose one of: one, redis-1"),
        ("quake/weak", "there is no /weak; choose one of: strong"),
        ("tsunami", f"there is no fault 'tsunami'; choose one of: {', '.join(FAMILIES)}, quake"),
    ],
)
def test_its_arguments_are_validated(entry, why):
    lock = LOCKS["redis"]
    spec = Spec(name="t", lock="redis", options=lock.read_options({}), nemesis=(entry,))
    with pytest.raises(BadArguments, match=why):
        validate(spec)


def test_a_malformed_fault_of_it_is_refused_with_its_error():
    row = {"at_s": 1, "duration_s": 1, "family": "quake", "targets": ["redis-1"], "arguments": {}}
    with pytest.raises(ValueError, match="fault 1: a quake needs a magnitude from 1 to 9"):
        from_rows([row], LAYOUT)


def test_it_is_drawn_with_its_arguments_and_not_together_with_conflicting_faults():
    found = draw(["quake", "partition"], 7, 300, 20, LAYOUT)
    quakes = [fault for fault in found if fault.family == "quake"]
    cuts = [fault for fault in found if fault.family == "partition"]
    assert quakes and cuts
    assert quakes[0].arguments["words"].startswith(f"{quakes[0].targets[0]} shakes at ")
    for quake in quakes:
        for cut in cuts:
            begins, ends = cut.at_s, cut.at_s + cut.duration_s
            assert not (begins < quake.at_s + quake.duration_s and quake.at_s < ends)


def test_the_director_injects_it_and_records_its_consequences(quake):
    ops = []

    def record(type, f, value, error):
        ops.append(Op(len(ops), len(ops), "nemesis", type, f, value, error))

    director = Director(Site(), record)
    (drawn,) = quake.draw(Random(7), LAYOUT, parse("quake/strong"))
    assert director.inject(Fault("q", "quake", drawn.targets, drawn.arguments)).proved
    assert director.heal("q").proved
    (fault,) = faults(History(ops))
    assert (fault.proved, fault.healed, fault.forgets) == (True, True, True)
    assert (fault.impairs, fault.links) == (frozenset(drawn.targets), ())


def test_servers_start_with_the_options_it_needs():
    assert needs_of(["quake", "power"]) == {"DISK": "small,lazy", "FOUNDATION": "loose"}


def test_heal_detects_and_undoes_its_leftovers():
    node = Node(shaking=True)
    cluster = type("Cluster", (), {"remote": lambda self, name: node})()
    assert healing.problems(cluster, ["client-1"]) == ["client-1: it shakes"]
    assert healing.heal(cluster, ["client-1"]) == ["client-1: held it still"]
    assert healing.heal(cluster, ["client-1"]) == []


def test_a_machine_that_is_cleaned_up_keeps_nothing_of_it():
    node = Node(shaking=True)
    healing.leave(node, "client-1")
    assert not node.shaking
    assert any(argv[0] == "rm" and "/run/fencepost/quake" in argv for argv in node.ran)


def test_the_docs_generator_knows_it():
    page = runpy.run_path(str(ROOT / "tools" / "docs.py"))["written"](
        "<!-- table: faults -->\n<!-- end -->\n"
    )
    assert "| `quake` | a server's machine shakes | `one`, a node | `strong` |" in page


def test_the_report_paints_it_in_its_colour(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    value = {
        "fault": "q",
        "phase": "start",
        "targets": ["redis-1"],
        "arguments": {"magnitude": 9, "words": "redis-1 shakes at 9"},
        "receipt": {"proved": True, "how": "the seismograph"},
    }
    rows = [
        {"index": n, "time": n * 1000, "process": "nemesis", "type": "ok", "f": "quake",
         "value": value | {"phase": phase}}
        for n, phase in enumerate(("start", "end"))
    ]  # fmt: skip
    (run / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge(run)
    html = (run / "report.html").read_text(encoding="utf-8")
    assert "--fault-quake: #123456;" in html
    assert "--fault-quake: #fedcba;" in html
    assert "redis-1 shakes at 9" in html
