"""The fields of locks and grants that guards need, and the stores that support each guard."""

from __future__ import annotations

import pytest

from fencepost.workloads.contract.guard import served
from fencepost.workloads.contract.lock import Failed, Grant
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES

GRANTS = {
    "nothing": Grant("orders", None, None, ""),
    "a token": Grant("orders", 1, None, ""),
    "a pair": Grant("orders", 2, None, "", minor=1),
    "a sequencer": Grant("orders", None, None, "", sequencer=("key", 1)),
}
ACCEPTED = {
    "none": {None, *GRANTS},
    "deadline": {None, *GRANTS},
    "compare-and-set": {None, *GRANTS},
    "fenced": {"a token", "a pair"},
    "fenced-version": {"a token", "a pair"},
    "new-value": {"a token", "a pair"},
    "paired": {"a pair"},
    "check-sequencer": {"a sequencer"},
    "transaction": {"a sequencer"},
}


def accepts(guard, grant):
    try:
        guard.require(grant)
    except Failed as error:
        assert error.kind == "refused"
        assert f"guard {guard.name} needs {guard.needs.what}" in error.text
        return False
    return True


@pytest.mark.parametrize("guard", GUARDS.values(), ids=lambda guard: guard.name)
def test_a_guard_requires_its_fields_of_a_grant(guard):
    grants = {None: None, **GRANTS}
    accepted = {name for name, grant in grants.items() if accepts(guard, grant)}
    assert accepted == ACCEPTED[guard.name]


@pytest.mark.parametrize("guard", GUARDS.values(), ids=lambda guard: guard.name)
def test_a_guard_is_kept_by_stores_that_there_are(guard):
    assert guard.stores
    assert set(guard.stores) <= set(STORES)
    # Where a rule is more than "yes", a store has to enforce it.
    kept = guard.lua or guard.looks_at_clock or guard.name in ("none", "transaction")
    assert kept or STORES[guard.stores[0]].server


def test_a_rule_in_redis_says_why_it_refused():
    for guard in GUARDS.values():
        assert bool(guard.lua) == bool(guard.refused)


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ("paired", ["redis -o token=paired"]),
        ("transaction", ["etcd", "chubby"]),
        ("check-sequencer", ["etcd", "chubby"]),
    ],
)
def test_the_locks_that_serve_a_guard_are_named_with_their_options(guard, expected):
    assert served(GUARDS[guard], LOCKS.values()) == expected


def test_any_lock_but_those_broken_on_purpose_serves_a_guard_that_needs_nothing():
    sound = [name for name in LOCKS if not name.startswith("broken")]
    assert served(GUARDS["none"], LOCKS.values()) == sound
