"""Compare the checkers with simulated runs whose truth is known (tests/simulated).

The runs are the same every time; SEED=... gives others. `python -m tests.simulated.soak` makes many
more, with a fresh seed, and shows one by its name.
"""

from __future__ import annotations

import os

import pytest

from tests.simulated import truth
from tests.simulated.defects import KINDS
from tests.simulated.plan import ENDS_WITH
from tests.simulated.simulation import simulate
from tests.simulated.soak import DEFECTS, Tally, tally, told, ways_of

SEED = os.environ.get("SEED", "unit")
SOUND, BROKEN, MOST = 100, 20, 400
OUTCOMES = ("ok", "fail", "info")

pytestmark = pytest.mark.oracle


def printed(name: str, found: Tally) -> None:
    print(f"seed {SEED}", *told(name, found), sep="\n")


@pytest.mark.parametrize("ends_with", ENDS_WITH)
def test_no_checker_accuses_a_sound_service(ends_with):
    found = tally(SEED, ends_with, "none", range(SOUND))
    printed(f"{ends_with} none", found)
    assert not found.wrong, "\n".join(found.wrong)
    for checker in ("lease_exclusion", "store", "resource"):
        assert found.said[checker, "unknown"] < SOUND / 5
    for checker in ("lease_exclusion", "linearizable", "fencing", "ownership", "liveness", "store"):
        assert found.said[checker, "True"] > SOUND / 3


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_that_reached_a_client_is_found(defect):
    found, number = Tally(), 0
    must = KINDS[defect].must
    # Runs differ: there are enough of them that each checker finds something.
    while number < BROKEN or not all(found.demanded[checker, "False"] for checker in must):
        for way in ways_of(defect):
            found.add(tally(SEED, way, defect, range(number, number + 1)))
            number += 1
        assert not found.wrong, "\n".join(found.wrong)
        assert number < MOST, f"seed {SEED}: it hardly ever reached a client in {number} runs"
    printed(f"any {defect}", found)


@pytest.mark.parametrize("ends_with", ENDS_WITH)
def test_a_sound_service_never_grants_a_lock_whose_lease_runs(ends_with):
    """Use the clients' own deadlines: the simulation must not accuse itself."""
    for number in range(40):
        run = simulate(ends_with, "none", f"{SEED}/itself/{number}")
        assert not truth.doubled(run.truth), (SEED, number)
        assert not truth.doubled_in_any_order(run.truth), (SEED, number)
        assert not truth.tokens_repeated(run.truth), (SEED, number)
        assert not truth.lost_updates(run.truth), (SEED, number)
        assert not truth.refused_and_shown(run.truth), (SEED, number)


def test_a_seed_gives_the_same_run_again():
    one, other = (simulate("close", "forgets", "again") for _ in range(2))
    assert one.ops == other.ops
    assert one.test == other.test


def test_sound_runs_contain_every_difficulty_for_verdicts():
    """The runs contain all outcomes, deaths in ops, late grants, losses, renewals, clock bounds."""
    wanted = {
        *((f, type) for f in ("acquire", "extend", "release", "write") for type in OUTCOMES),
        *((f, "ok") for f in ("read", "close")),
        *(("read", "fail"), ("close", "info"), ("lost", "info"), ("renewed", "info")),
        *(("killed", f) for f in ("acquire", "extend", "release", "write", "read")),
        *("shared", "clocks", "late", "expired"),
    }
    seen = set()
    for number in range(MOST):
        for ends_with in ENDS_WITH:
            seen |= sights(simulate(ends_with, "none", f"many/{number}"))
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
    return seen | ({"clocks"} & set(run.test))
