"""A package of toys, one of each kind of thing: its modules, and its entry points by group."""

from __future__ import annotations

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
    "toy_defect": """
from fencepost.workloads.contract.defect import Defect
class Sound:
    pass
class Lock(Sound):
    pass
DEFECT = Defect(
    name="toy-defect", family="lease", what="The lock is of wood.", seen="by construction",
    breaks="A lease is kept.", checker="lease_exclusion",
)
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
from fencepost.plugins import Aimed, Aiming, Closing, Colour, Drawn, Family, MachineNeed, Receipt
from fencepost.plugins import pick

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
    closing=Closing(lambda at: {}, most=2, takes=1.0, lasts=0.5, place=3),
    aim=Aiming(draw=lambda random, at, asked, length_s, points: Aimed(["holder"], {}, 0.125)),
    colour=Colour("#123456", "#fedcba"),
    machine=MachineNeed("a tree", lambda: (False, "no tree, so no worm: plant one")),
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
    "fencepost.defects": "toy-defect = toy_defect:DEFECT",
    "fencepost.claims": "T1 = toy_claim:CLAIM",
    "fencepost.suites": "toy-suite = toy_suite:SUITE",
    "fencepost.faults": "toy-fault = toy_fault:FAMILY",
    "fencepost.servers": "toy-server = toy_server:KIND",
    "fencepost.models": "toy-model = toy_model:MODEL",
    "fencepost.simulated_faults": "toy-fault = toy_simulated:SIMULATED",
}
