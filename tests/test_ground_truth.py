"""Compare the checkers with simulated runs whose truth is known (tests/simulated).

The runs are the same every time; SEED=... gives others. `python -m tests.simulated.soak` makes many
more, with a fresh seed, and shows one by its name.
"""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from tests.simulated import dead, reached
from tests.simulated.defects import KINDS
from tests.simulated.plan import WAYS
from tests.simulated.simulation import simulate
from tests.simulated.soak import DEFECTS, Tally, tally, told
from tests.simulated.world import SECOND

SEED = os.environ.get("SEED", "unit")
SOUND, BROKEN, MOST = 100, 20, 400
OUTCOMES = ("ok", "fail", "info")

pytestmark = pytest.mark.oracle


def printed(name: str, found: Tally) -> None:
    print(f"seed {SEED}", *told(name, found), sep="\n")


@pytest.mark.parametrize("way", WAYS)
def test_no_checker_accuses_a_sound_service(way):
    found = tally(SEED, way, "none", range(SOUND))
    printed(f"{way} none", found)
    assert not found.wrong, "\n".join(found.wrong)
    for checker in ("lease_exclusion", "store", "resource"):
        assert found.said[checker, "unknown"] < SOUND / 5
    always = ["lease_exclusion", "linearizable", "ownership", "liveness", "store"]
    for checker in always if way == "quorum" else [*always, "fencing"]:
        assert found.said[checker, "True"] > SOUND / 3
    for checker in always:
        assert found.said[checker, "unknown"] <= SOUND / 10


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_that_reached_a_client_is_found(defect):
    found, number = Tally(), 0
    must = KINDS[defect].must
    # Runs differ: there are enough of them that each checker finds something.
    while number < BROKEN or not all(found.demanded[checker, "False"] for checker in must):
        for way in KINDS[defect].ways:
            found.add(tally(SEED, way, defect, range(number, number + 1)))
            number += 1
        assert not found.wrong, "\n".join(found.wrong)
        assert number < MOST, f"seed {SEED}: it hardly ever reached a client in {number} runs"
    printed(f"any {defect}", found)


@pytest.mark.parametrize("way", WAYS)
def test_a_sound_service_never_grants_a_lock_whose_lease_runs(way):
    """Use the clients' own deadlines: the simulation must not accuse itself."""
    for number in range(40):
        run = simulate(way, "none", f"{SEED}/itself/{number}")
        assert not reached.doubled(run.truth), (SEED, number)
        assert not reached.doubled_in_any_order(run.truth), (SEED, number)
        assert not reached.tokens_repeated(run.truth), (SEED, number)
        assert not reached.lost_updates(run.truth), (SEED, number)
        assert not reached.refused_and_shown(run.truth), (SEED, number)
        assert not reached.doubled_again(run.truth), (SEED, number)
        assert not reached.extended_lost(run.truth), (SEED, number)
        assert not reached.tokens_fell(run.truth), (SEED, number)
        assert not reached.stolen(run.truth), (SEED, number)
        assert not dead.dead(run.truth, run.ops), (SEED, number)
        assert not dead.refused_alone(run.truth, run.ops), (SEED, number)


def test_a_seed_gives_the_same_run_again():
    one, other = (simulate("close", "forgets", "again") for _ in range(2))
    assert one.ops == other.ops
    assert one.test == other.test


def test_sound_runs_contain_every_difficulty_for_verdicts():
    """The runs contain all outcomes and kinds of errors, deaths in ops, late grants, losses,
    renewals, clock bounds, equal stamps, long calm, faults of bystanders."""
    wanted = {
        *((f, type) for f in ("acquire", "extend", "release", "write") for type in OUTCOMES),
        *((f, "ok") for f in ("read", "close")),
        *(("read", "fail"), ("close", "info"), ("lost", "info"), ("renewed", "info")),
        *(("killed", f) for f in ("acquire", "extend", "release", "write", "read")),
        *("shared", "clocks", "late", "expired"),
        *("not-granted", "not-held", "no-quorum", "timeout", "unreachable", "refused"),
        *("raised", "unreadable"),
        *("granted by", "no deadline", "reentrant", "equal stamps", "calm", "bystander", "meteor"),
    }
    seen = set()
    for number in range(MOST):
        for way in WAYS:
            seen |= sights(simulate(way, "none", f"many/{number}"))
        if wanted <= seen:
            return
    raise AssertionError(f"never seen: {wanted - seen}")


def sights(run):
    """Return the kinds of events that a run contains."""
    seen = {(op.f, op.type) for op in run.ops}
    seen |= {("killed", op.f) for op in run.ops if op.error and op.error[0] == "killed"}
    seen |= {"shared" for op in run.ops if op.value.get("mode") == "shared"}
    seen |= {"expired" for op in run.ops if op.f == "lost" and op.value["hold"] is None}
    seen |= {"late" for held in run.truth.holds if held.start >= held.deadline(held.start)}
    plan = run.plan
    seen |= {op.error[0] for op in run.ops if op.error}
    seen |= {"granted by" for op in run.ops if "granted_by" in op.value}
    seen |= {"no deadline" for op in run.ops if op.value.get("deadline", 0) is None}
    seen |= {"reentrant" for _ in reentered(run.truth.holds)}
    seen |= {"equal stamps" for one, other in pairwise(run.ops) if one.time == other.time}
    seen |= {"meteor" for fault in run.truth.faults if fault.family == "meteor"}
    last = max((fault.end for fault in run.truth.faults), default=0)
    seen |= {"calm"} if plan.length > last + 15 * SECOND else set()
    hit = {node for strike in plan.strikes for node in strike.targets}
    seen |= {"bystander"} if plan.idle and plan.client_names[-1] in hit else set()
    return seen | ({"clocks"} & set(run.test))


def reentered(holds):
    """Yield the holds that were granted to a process that had the lock."""
    for held in holds:
        for other in holds:
            same = held.process == other.process and held.lock == other.lock
            if same and other.start < held.asked and held.start < other.surely:
                yield held
