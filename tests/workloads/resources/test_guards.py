"""The fields of locks and grants that guards need, and the stores that support each guard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.workloads.contract.guard import (
    ACCEPT,
    NOTHING,
    PAIR,
    SEQUENCER,
    TOKEN,
    Rule,
    served,
)
from fencepost.workloads.contract.lock import Failed, Grant
from fencepost.workloads.contract.store import Store
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES, keepers

GRANTS = {
    "nothing": Grant("orders", None, None, ""),
    "a token": Grant("orders", 1, None, ""),
    "a pair": Grant("orders", 2, None, "", minor=1),
    "a sequencer": Grant("orders", None, None, "", sequencer=("key", 1)),
}
ACCEPTED = {
    NOTHING.what: {None, *GRANTS},
    TOKEN.what: {"a token", "a pair"},
    PAIR.what: {"a pair"},
    SEQUENCER.what: {"a sequencer"},
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
    assert accepted == ACCEPTED[guard.needs.what]


@pytest.mark.parametrize("guard", GUARDS.values(), ids=lambda guard: guard.name)
def test_a_guard_is_kept_by_at_least_one_store(guard):
    stores = [STORES[name] for name in keepers(guard)]
    assert stores
    if guard.rules is not ACCEPT:
        # Where the rule is more than "yes", the store's rule or its server keeps it.
        assert all(store.rule(guard) not in ACCEPT.values() or store.server for store in stores)


def test_a_rule_in_redis_says_why_it_refused():
    for guard in GUARDS.values():
        rule = guard.rules.get("lua", Rule())
        assert bool(rule.text) == bool(rule.refused)


def test_a_store_keeps_the_guards_in_its_language_and_those_that_it_has_rules_for():
    store = Store(
        "mine", "my store", open, language="basic", rules={"fenced": Rule("10 IF T < H STOP")}
    )
    assert store.rule(GUARDS["fenced"]) == Rule("10 IF T < H STOP")
    assert store.rule(GUARDS["paired"]) is None
    guard = replace(GUARDS["paired"], rules={"basic": Rule("20 RUN")})
    assert store.rule(guard) == Rule("20 RUN")
    assert STORES["redis"].rule(guard) is None
    both = replace(GUARDS["fenced"], rules={"basic": Rule("30 END")})
    assert store.rule(both) == Rule("10 IF T < H STOP")


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ("paired", ["redis -o token=paired"]),
        ("transaction", ["etcd", "chubby"]),
        ("check-sequencer", ["etcd", "chubby"]),
    ],
)
def test_the_locks_that_serve_a_guard_are_named_with_their_options(guard, expected):
    named = served(GUARDS[guard], LOCKS.values())
    assert set(expected) <= set(named)
    # Neither has what these guards need: no token by default, no second token, no sequencer.
    assert not {"redis", "redlock", "redlock -o token=one"} & set(named)


def test_any_sound_lock_serves_a_guard_that_needs_nothing():
    sound = [name for name, lock in LOCKS.items() if lock.sound]
    assert served(GUARDS["none"], LOCKS.values()) == sound
