"""A thing of a registry is known by its bundle: no code elsewhere decides by its name.

A fault family, a kind of server, a checker, a guard, a lock, a store, a model: a package can add
one. Code that names a built-in one leaves it out. So each decision is a field of the bundle.
ALLOWED lists the other names, with their reasons.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from fencepost.checker.checkers import CHECKERS
from fencepost.harness.servers.kinds import KINDS
from fencepost.hunt.models.registry import MODELS
from fencepost.nemesis.families import FAMILIES
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES
from tests.test_architecture import PACKAGE, modules

REGISTRIES = (FAMILIES, KINDS, CHECKERS, GUARDS, LOCKS, STORES, MODELS)
# These names are ordinary words of this code as well: fields of an op, values of a setting.
WORDS = frozenset(("none", "server", "resource", "store", "deadline", "transaction", "cpu"))
# The bundles' own folders, and runs that are published about ours.
HOMES = (
    "workloads/scenarios/", "workloads/defects/", "workloads/locks/", "workloads/electors/",
    "workloads/resources/", "harness/servers/", "hunt/models/", "node/",
)  # fmt: skip
OTHER = "an ordinary word here"
DEFAULT = "a default, which the user can change"
ALLOWED: dict[str, tuple[str, ...]] = {
    "checker/exclusion.py": ("it defines both checkers", "lease_exclusion", "mutual_exclusion"),
    "checker/facts/faults.py": ("only a pause's receipt says at which failpoint it is", "pause"),
    "checker/facts/reigns.py": ("names of causes in stored figures", "kill", "pause"),
    "checker/facts/time_order.py": (OTHER, "clock"),
    "checker/fencing.py": ("stored tests of 0.1.0 lack the field", "fenced"),
    "checker/resource.py": ("stored tests of 0.1.0 lack the field", "compare-and-set"),
    "harness/campaigns/bench.py": (DEFAULT, "redis"),
    "harness/campaigns/defect_plays.py": (
        "fencing judges tokens and writes apart; locks on one store survive kills of clients",
        "fencing",
        "kill:client",
    ),
    "harness/campaigns/issue.py": (OTHER, "http"),
    "harness/campaigns/matrix.py": (DEFAULT, "fenced"),
    "harness/campaigns/tally.py": (
        "holds are counted from the evidence of these, which has its own form for each",
        "lease_exclusion",
        "mutual_exclusion",
    ),
    "harness/clients/answer.py": (OTHER, "clock"),
    "harness/clients/worker.py": (OTHER, "clock"),
    "harness/cluster/libraries.py": (
        "Debian has the library, and only its client is compiled",
        "curator",
    ),
    "harness/command/check.py": (
        "faults that the check of the contract injects",
        "pause:server,kill:client",
    ),
    "harness/execute/contract.py": (
        "faults that the check of the contract injects",
        "kill",
        "pause",
    ),
    "harness/execute/elector_contract.py": (
        "faults that the check of the contract injects",
        "kill",
        "pause",
    ),
    "harness/execute/stage.py": ("a client that is killed has no call to finish", "kill"),
    "harness/publish/documents.py": (OTHER, "http"),
    "harness/spec/respec.py": ("stored tests of 0.1.0 had an option `etcd`", "etcd"),
    "harness/spec/simulation.py": (
        "the guard that judges tokens, where a hunt names none",
        "fenced",
    ),
    "harness/spec/validation.py": (
        "a custom image lacks the clock of a client that kill restarts; "
        "SDKs write to a resource in Redis alone",
        "clock",
        "kill",
        "redis",
    ),
    "harness/web/guard.py": (OTHER, "http"),
    "harness/userlock/hunt_support.py": ("a module that locks import, as grpc", "aetcd"),
    "hunt/bridge/to_scenario.py": (
        "a simulated message is reproduced by these faults; the gate knows RESP alone",
        "delay",
        "partition",
        "pause",
        "redis",
    ),
    "hunt/faults/kill.py": ("a loss of power is a crash that loses more (power.py)", "power"),
    "hunt/intercept/patches.py": ("the name of a module", "kazoo"),
    "hunt/intercept/refused.py": ("the name of a function of `os`", "kill"),
    "hunt/sim/client_node.py": (OTHER, "cancel", "clock"),
    "hunt/sim/network.py": (OTHER, "clock"),
    "hunt/sim/setting.py": (DEFAULT, "redis"),
    "nemesis/packet.py": ("its own variant", "delay"),
    "report/figures/offsets.py": (OTHER, "clock"),
    "report/pages/bench.py": (DEFAULT, "redis"),
    "report/words/answer.py": (
        "its sentences are about the causes that these give",
        "fencing",
        "mutual_exclusion",
    ),
    "report/words/findings.py": (
        "other sentences of a summary are about these three",
        "lease_exclusion",
        "linearizable",
        "liveness",
    ),
    "report/words/leaders.py": ("names of causes in stored figures", "kill", "pause"),
    "report/words/questions.py": ("fencing judges tokens and writes apart", "fencing"),
    "workloads/client/gate.py": ("it reads RESP", "redis"),
    "workloads/client/orders.py": (OTHER, "clock"),
    "workloads/client/program.py": ("its sockets read RESP", "redis"),
    "workloads/client/wire.py": (DEFAULT, "redis"),
    "workloads/contract/guard.py": ("an option's value", "paired"),
    "workloads/contract/locktype.py": (DEFAULT, "redis"),
    "workloads/contract/store.py": (DEFAULT, "redis"),
    "workloads/transport/curator.py": ("the name of a jar", "zookeeper"),
    "workloads/transport/nats_bucket.py": ("a module's name", "nats"),
    "workloads/transport/postgres_link.py": (OTHER, "postgres"),
    "workloads/transport/request_link.py": (OTHER, "http"),
    "workloads/transport/s3_link.py": (OTHER, "http"),
}


def named() -> set[str]:
    """Return the names of all built-in things that are no ordinary words."""
    return {name for registry in REGISTRIES for name in registry._ours} - WORDS


def family_of(entry: str) -> str:
    return entry.partition("/")[0].partition(":")[0]


def is_name(text: str, names: set[str]) -> bool:
    """Return whether a text is a registered name, or FAMILY/VARIANT or FAMILY:TARGET."""
    family = family_of(text)
    entry = family != text and not text.startswith(f"{family}://") and " " not in text
    return text in names or (entry and family in FAMILIES._ours)


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield each string constant that is no docstring."""
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in comments:
                yield text


def sites(tree: ast.AST, names: set[str]) -> set[str]:
    return {text for text in texts(tree) if is_name(text, names)}


@cache
def found() -> dict[str, set[str]]:
    """Return, by file, the registered names by which it decides."""
    rows = {}
    for path in modules().values():
        file = path.relative_to(PACKAGE).as_posix()
        # nemesis/pause.py and hunt/faults/pause.py are the bundle's own.
        own = path.stem if file.startswith(("nemesis/", "hunt/faults/", "checker/")) else ""
        if not file.startswith(HOMES):
            names = named() - {own.replace("_", "-"), own}
            there = sites(ast.parse(path.read_text(encoding="utf-8")), names)
            if there := {one for one in there if family_of(one) != own}:
                rows[file] = there
    return rows


def test_no_code_outside_of_a_bundle_decides_by_its_name():
    new = {file: names - set(ALLOWED.get(file, ("",))[1:]) for file, names in found().items()}
    assert {file: names for file, names in new.items() if names} == {}, (
        "make it a field of the bundle, or give a reason in ALLOWED"
    )


def test_each_exception_is_still_there_and_has_a_reason():
    for file, (why, *names) in ALLOWED.items():
        assert len(why) > 10 and names, file
        assert set(names) <= found().get(file, set()), file


def test_a_decision_by_name_is_found_in_each_form():
    names = {"kill", "etcd"}
    for code in (
        'if family == "kill": pass', 'if family in ("kill", "x"): pass', 'X = ("kill", "x")',
        'X = {"kill": 1}', 'match x:\n    case "kill": pass', 'X: tuple = frozenset(("kill",))',
        'if {"kill"} <= x: pass', 'x = {1: "kill"}', 'x = y if z else "kill"', 'return "kill"',
        'x - {"kill"}', 'x.startswith("kill/")', 'f(1, "kill")', 'f(family="kill")',
        'X = {("kill", None): 4}', '"""Doc."""\nfaults.begin("kill", f(etcd="x"))',
    ):  # fmt: skip
        found = {one.partition("/")[0] for one in sites(ast.parse(code), names)}
        assert found == {"kill"}, code
    assert sites(ast.parse('def f():\n    """kill"""'), names) == set()
    assert sites(ast.parse('X = "kill/point"'), names) == {"kill/point"}
