"""Models parse values of ops and initial states, and refuse malformed ones with an error."""

import pytest

from fencepost.checker.lincheck.model import UNSAID, Action, BadValue, Truth, frozen
from fencepost.checker.lincheck.models import DATA, LOCKS, NAMES, named
from tests.checker.lincheck.lincheck_specifications import call


@pytest.mark.parametrize(
    ("name", "op", "key"),
    [
        ("register", call(1, "read", None, 3), None),
        ("register", call(1, "write", {"resource": "a", "value": 1}), "a"),
        ("register", call(1, "read", None, {"resource": "a", "value": 1}), "a"),
        ("register", call(1, "write", {"value": 1}), None),
        ("kv", call(1, "put", ["a", "x"]), "a"),
        ("kv", call(1, "get", "a"), "a"),
        ("kv", call(1, "get", 3), 3),
        ("kv", call(1, "put", {"key": [1], "value": "x"}), (1,)),
        *((name, call(1, "acquire", {"lock": ["a"]}), ("a",)) for name in LOCKS),
        *((name, call(1, "acquire", "a"), "a") for name in ("mutex", "semaphore", "rw-lock")),
        *((name, call(1, "acquire", {"ttl": 1}), None) for name in LOCKS),
        ("owner-mutex", call(1, "acquire", 7), 7),
        ("semaphore", call(1, "acquire", 2), None),
        ("rw-lock", call(1, "acquire", "read"), None),
        ("rw-lock", call(1, "acquire", "exclusive"), None),
        ("rw-lock", call(1, "acquire", 7), 7),
        *((name, call(1, "acquire"), None) for name in LOCKS),
        ("set", call(1, "add", 1), None),
        ("counter", call(1, "add", 1), None),
        ("fifo-queue", call(1, "enqueue", 1), None),
        ("unordered-queue", call(1, "enqueue", 1), None),
        ("multi-register", call(1, "write", ["x", 1]), None),
    ],
)
def test_ops_on_another_key_resource_or_lock_are_another_object(name, op, key):
    assert named(name).partition(op) == key


@pytest.mark.parametrize(
    ("name", "op", "said"),
    [
        ("cas-register", call(1, "cas", [1]), "cas needs [old, new], not [1]"),
        ("cas-register", call(1, "cas", 12), "cas needs [old, new], not 12"),
        ("kv", call(1, "put", ["a"]), "put needs [key, value], not ['a']"),
        ("kv", call(1, "append", "a"), "append needs [key, value], not 'a'"),
        ("kv", call(1, "get", "a", ["a", 1, 2]), "get needs [key, value], not ['a', 1, 2]"),
        ("kv", call(1, "append", ["a", 3]), "append works on strings, not on 3"),
        ("kv", call(1, "get", "a", 3), "get works on strings, not on 3"),
        ("kv", call(1, "put", {"value": 1}), "put needs [key, value], not {'value': 1}"),
        ("multi-register", call(1, "txn", 3, 3), "txn needs a list of [f, register, value], not 3"),
        ("multi-register", call(1, "read", [3], [3]), "read needs [register, value], not [3]"),
        (
            "multi-register",
            call(1, "txn", [["r", 1]], [["r", 1]]),
            "a part of a txn is [read or write, register, value], not ['r', 1]",
        ),
        (
            "multi-register",
            call(1, "txn", [["x", 1, 2]], [["x", 1, 2]]),
            "a part of a txn is [read or write, register, value], not ['x', 1, 2]",
        ),
        ("set", call(1, "read", None, 3), "a set reads as a list of its values, not 3"),
        ("counter", call(1, "add", "1"), "a counter adds an int, not '1'"),
        ("counter", call(1, "add", True), "a counter adds an int, not True"),
        ("counter", call(1, "read", None, "1"), "a counter reads as an int, not '1'"),
        ("fifo-queue", call(1, "enqueue", None), "null cannot be enqueued"),
        (
            "fenced-mutex",
            call(1, "acquire", None, {"token": "x"}),
            "a token must be an int or null, not 'x'",
        ),
        ("fenced-mutex", call(1, "acquire", None, {"token": True}), "a token must be an int"),
        ("semaphore", call(1, "acquire", 0), "permits must be an int from 1, not 0"),
        ("semaphore", call(1, "acquire", {"permits": True}), "permits must be an int from 1"),
        (
            "rw-lock",
            call(1, "acquire", {"mode": "both"}),
            "mode must be shared or exclusive, not 'both'",
        ),
        ("rw-lock", call(1, "acquire", {"mode": 3}), "mode must be shared or exclusive, not 3"),
    ],
)
def test_a_value_that_a_model_cannot_read_is_named(name, op, said):
    with pytest.raises(BadValue) as caught:
        named(name).action(op)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("name", ["mutex", "owner-mutex", "fenced-mutex", "reentrant-mutex"])
def test_a_lock_is_named_by_a_string_an_int_or_nothing(name):
    with pytest.raises(BadValue, match=r"acquire needs the lock's name or \{lock: name\}, not 1.5"):
        named(name).partition(call(1, "acquire", 1.5))


@pytest.mark.parametrize(
    ("name", "init", "said"),
    [
        ("kv", 3, "kv starts with an object of strings, not 3"),
        ("kv", {"a": 1}, "kv starts with an object of strings"),
        ("multi-register", [1], "multi-register starts with an object of registers, not [1]"),
        ("set", 3, "set starts with a list, not 3"),
        ("counter", "0", "counter starts with an int, not '0'"),
        ("counter", True, "counter starts with an int, not True"),
        ("fifo-queue", {}, "fifo-queue starts with a list, not {}"),
        ("unordered-queue", "ab", "unordered-queue starts with a list, not 'ab'"),
        ("reentrant-mutex", 0, "reentrant-mutex starts with the most depth allowed"),
        ("reentrant-mutex", True, "reentrant-mutex starts with the most depth allowed"),
        ("fenced-mutex", "1", "fenced-mutex starts with the last token, an int or null, not '1'"),
        ("semaphore", 0, "a semaphore needs its number of permits, an int from 1, not 0"),
        ("semaphore", True, "a semaphore needs its number of permits"),
        ("rw-lock", 1, "rw-lock always starts free"),
        ("lock", None, "unknown model 'lock'; choose one of register, cas-register"),
    ],
)
def test_a_start_that_a_model_cannot_have_is_named(name, init, said):
    with pytest.raises(BadValue) as caught:
        named(name, init)
    assert str(caught.value).startswith(said)


def test_a_failed_release_did_nothing_or_ended_the_hold_and_nothing_else():
    with pytest.raises(BadValue, match="failed_release must be nothing or ended, not 'both'"):
        named("mutex", None, "both")


@pytest.mark.parametrize("name", NAMES)
def test_a_model_goes_by_its_name_and_starts_by_its_own_default(name):
    assert named(name).name == name
    assert named(name).initial == named(name, None).initial


@pytest.mark.parametrize(
    ("name", "initial"),
    [
        ("counter", 0),
        ("semaphore", 1),
        ("set", frozenset()),
        ("fifo-queue", ()),
        ("kv", frozenset()),
        ("unordered-queue", frozenset()),
        ("multi-register", frozenset()),
        ("register", None),
        ("mutex", None),
        ("fenced-mutex", (None, None)),
    ],
)
def test_without_a_start_a_model_starts_empty_free_or_null(name, initial):
    assert named(name).initial == initial


def test_a_jepsen_lock_may_return_its_fence_as_the_value():
    model = named("fenced-mutex")
    assert model.action(call(1, "acquire", None, 7)).result == 7
    assert model.action(call(1, "acquire", {"lock": "a"}, {"token": 7})).result == 7
    assert model.action(call(1, "acquire", 7, 7)).result is None  # the value names the lock


def test_a_read_of_null_from_kv_is_an_empty_text():
    action = named("kv").action
    assert action(call(1, "get", "a", None)).result == ""
    assert action(call(1, "get", "a", ["a", "x"])).result == "x"
    assert action(call(1, "get", "a", {"key": "a", "value": "x"})).result == "x"


@pytest.mark.parametrize(
    ("value", "permits"), [(None, 1), ("a", 1), (3, 3), ({"lock": "a"}, 1), ({"permits": 2}, 2)]
)
def test_a_semaphore_takes_as_many_permits_as_the_value_says_else_one(value, permits):
    assert named("semaphore", 5).action(call(1, "acquire", value)).value == permits


@pytest.mark.parametrize(
    ("value", "mode"),
    [
        (None, "exclusive"),
        ("a", "exclusive"),
        (7, "exclusive"),
        ({"lock": "a"}, "exclusive"),
        ("read", "shared"),
        ("shared", "shared"),
        ("write", "exclusive"),
        ({"mode": "read"}, "shared"),
        ({"mode": "write"}, "exclusive"),
    ],
)
def test_a_rw_lock_is_taken_in_the_mode_that_the_value_says_else_exclusively(value, mode):
    assert named("rw-lock").action(call(1, "acquire", value)).value == mode


def test_a_release_of_a_semaphore_that_never_returned_may_turn_out_to_have_failed():
    for failed_release, f in (("nothing", "release"), ("ended", "ended")):
        model = named("semaphore", 2, failed_release)
        assert model.action(call(1, "release", type="info")).f == f
        assert model.action(call(1, "release")).f == "release"
        assert model.action(call(1, "acquire", type="info")).f == "acquire"


LOCK_OPS = {"acquire", "extend", "release", "close", "lost", "renewed"}


@pytest.mark.parametrize(
    ("name", "functions", "ignored"),
    [
        ("register", {"read", "write"}, LOCK_OPS),
        ("cas-register", {"read", "write", "cas"}, LOCK_OPS),
        ("multi-register", {"txn", "read", "write"}, LOCK_OPS),
        ("kv", {"put", "append", "get"}, set()),
        ("set", {"add", "read"}, set()),
        ("counter", {"add", "read"}, set()),
        ("fifo-queue", {"enqueue", "dequeue"}, set()),
        ("unordered-queue", {"enqueue", "dequeue"}, set()),
        *(
            (
                name,
                {"acquire", "release"},
                {"read", "write", "extend", "close", "lost", "renewed"},
            )
            for name in LOCKS
            if name != "lease-mutex"
        ),
    ],
)
def test_a_model_parses_its_own_ops_and_skips_others(name, functions, ignored):
    model = named(name)
    assert (model.functions, model.ignored) == (functions, ignored)


def test_a_transaction_is_its_reads_that_saw_something_and_its_writes():
    action = named("multi-register").action
    told = [["read", "x", 1], ["r", "y", None], ["w", "z", None], ["write", "x", 2]]
    wrote = (("write", "z", None), ("write", "x", 2))
    assert action(call(1, "txn", told, told)) == Action("txn", (("read", "x", 1), *wrote))
    assert action(call(1, "txn", told, type="info")) == Action("txn", wrote)
    assert action(call(1, "txn", told, None)) == Action("txn", (("read", "x", 1), *wrote))
    assert action(call(1, "read", ["x", None], ["x", 1])) == Action("txn", (("read", "x", 1),))


def test_a_lease_begins_when_it_is_asked_for_and_an_unheard_grant_may_expire_too():
    model = named("lease-mutex")
    for f in ("acquire", "extend"):
        for type in ("ok", "info"):
            op = call(1, f, {"ttl": 10, "hold": "h"}, {"hold": "h"}, type)._replace(time=5)
            action = model.action(op)
            timed = model.spawns(action)
            assert (timed.at_ns, timed.key) == (15, action.owner)
            assert timed.action == Action("expire", 15, owner=action.owner)
    release = model.action(call(1, "release", {"hold": "h", "ttl": 10}))
    assert model.spawns(release) is None
    assert model.spawns(model.action(call(1, "acquire", {}))) is None


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (call(1, "acquire", {"ttl": -1}), "a ttl must be an int of ns, not -1"),
        (call(1, "extend", {"ttl": True}), "a ttl must be an int of ns, not True"),
        (call(1, "acquire", {"ttl": 0}), None),
        (call(1, "release", {"hold": [1]}), "a hold must be an id, int or string, not [1]"),
        (call(1, "acquire", {}, {"hold": 1.5}), "a hold must be an id, int or string, not 1.5"),
        (
            call(1, "extend", {"ttl": 1})._replace(time=None),
            "extend has a ttl and the event has no time, so no lease can be timed",
        ),
    ],
)
def test_a_lease_or_hold_that_cannot_be_read_is_named(op, said):
    if said is None:
        assert named("lease-mutex").action(op).value == 0
        return
    with pytest.raises(BadValue) as caught:
        named("lease-mutex").action(op)
    assert str(caught.value) == said


def test_a_lease_mutex_starts_with_the_last_token_that_was_given():
    assert named("lease-mutex", 7).initial.token == 7
    with pytest.raises(BadValue, match="lease-mutex starts with the last token, an int or null"):
        named("lease-mutex", "7")


def test_a_hold_is_identified_by_the_grant_s_id_or_else_by_the_request_s():
    action = named("lease-mutex").action
    asked = {"hold": "a"}
    assert action(call(1, "acquire", asked, {"token": 3})).owner.hold == "a"
    assert action(call(1, "acquire", asked, {"hold": "b"})).owner.hold == "b"
    assert action(call(1, "release", asked, {"hold": "b"})).owner.hold == "a"
    assert action(call(1, "acquire", 7)).owner.hold is None


def test_a_release_settles_a_lease():
    model = named("lease-mutex", None, "ended")
    grant = model.action(call(1, "acquire", {}, {"hold": "h"})).owner
    for type in ("ok", "fail"):
        assert model.settles(model.action(call(1, "release", {"hold": "h"}, type=type))) == grant
    extend = model.action(call(1, "extend", {"hold": "h"}))
    assert model.settles(extend) is None
    assert model.resumes(extend) == model.resumes(model.action(call(1, "release", {"hold": "h"})))
    assert model.resumes(extend) == grant
    assert model.resumes(model.action(call(1, "acquire", {}, {"hold": "h"}))) is None


@pytest.mark.parametrize(("name", "model"), [*DATA.items(), *LOCKS.items()])
def test_a_model_made_without_arguments_starts_as_the_one_of_its_name(name, model):
    assert model().initial == named(name).initial


def test_a_failed_release_of_a_mutex_ends_its_process_s_hold_whichever_client_holds_it():
    model = named("mutex", None, "ended")
    assert model.action(call(1, "release")) == Action("release")
    assert model.action(call(1, "acquire")) == Action("acquire", owner=1)
    ended = model.action(call(1, "release", type="fail"))
    assert ended == Action("ended", owner=1)
    assert model.wants(ended) is UNSAID


def test_a_cas_that_did_not_match_has_the_result_false():
    assert named("cas-register").action(call(1, "cas", [1, 2], False)).result is Truth.FALSE


def test_true_differs_from_false_and_from_one():
    written, read = call(1, "write", True, True), call(1, "read", None, True)
    register = named("register")
    assert register.action(written).value is register.action(read).result is Truth.TRUE
    assert Truth.TRUE not in (Truth.FALSE, 1)


def test_maps_compare_equal_in_any_order_and_with_keys_of_any_type():
    told = [(1, "a"), ("b", [2]), (None, True)]
    assert frozen(dict(told)) == frozen(dict(reversed(told)))
    assert frozen(dict(told)) != frozen({**dict(told), "b": [3]})
    hash(frozen(dict(told)))
    # In order of their text, 10000000000000000 would be the first of the two, and 1e+16 the last.
    assert frozen({10**16: 1, 11: 2}) == frozen({1e16: 1, 11: 2})
    assert frozen({frozenset({0, 8}): 1, 4: 2}) == frozen({4: 2, frozenset({8, 0}): 1})


def test_maps_and_sets_are_shown_as_edn_writes_them():
    assert repr(frozen({"b": {2, 1}, "a": [{}]})) == "{'a' ({},), 'b' #{1 2}}"


def test_sets_are_equal_if_their_items_are_and_true_is_none_of_the_numbers():
    assert frozen({2, True}) == frozenset({2, Truth.TRUE})
    assert frozen(frozenset({(1, True)})) == frozenset({(1, Truth.TRUE)})
    assert frozen(set()) == frozenset()


def test_a_value_that_cannot_be_compared_is_refused_by_its_type():
    with pytest.raises(BadValue, match="a value of type bytearray cannot be compared"):
        frozen(bytearray(b"a"))
