"""The scripts in Python behave as those in Lua."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.hunt.models.redis.arguments import CommandError
from fencepost.hunt.models.redis.lua import Machine, evaluate
from fencepost.hunt.models.redis.scripts import KNOWN
from fencepost.hunt.models.redis.store import Scores, Store

pytestmark = pytest.mark.slow

KEYS = ("one", "two", "three")
SECRETS = ("mine", "yours")
NUMBERS = st.integers(-1, 5).map(str)


@st.composite
def stores(draw):
    """Draw a database as such scripts leave it, at some time between expiries."""
    store = Store()
    store.now_ms = draw(st.integers(900, 1100))
    for key in KEYS:
        match draw(st.integers(0, 4)):
            case 1:
                expires = draw(st.sampled_from((None, 1000, 1050)))
                store.put(key, draw(st.sampled_from(SECRETS)), expires)
            case 2:
                store.put(key, draw(NUMBERS))
            case 3:
                scores = draw(st.dictionaries(NUMBERS, st.integers(0, 5), min_size=1))
                store.put(key, Scores({name: float(score) for name, score in scores.items()}))
            case 4:
                names = st.sampled_from(("version", "highest", "writer"))
                store.put(key, draw(st.dictionaries(names, NUMBERS, min_size=1)))
    return store


ARGUMENTS = st.tuples(
    st.sampled_from(SECRETS), st.sampled_from(("50", "1000")), NUMBERS, NUMBERS, NUMBERS
)


def outcome(run, store):
    try:
        reply = run()
    except CommandError as error:
        # Lua says where in the script.
        reply = str(error).partition(" ")[0]
        reply = "an error" if reply in ("ERR", "WRONGTYPE") else reply
    return reply, store.dump()


@pytest.mark.parametrize("place", range(len(KNOWN)))
@settings(max_examples=60)
@given(store=stores(), arguments=ARGUMENTS)
def test_a_known_script_behaves_as_its_lua_text(place, store, arguments):
    body, known = list(KNOWN.items())[place]
    args = list(arguments)
    if "ARGV[4]" not in body:
        # The locks' own: the secret, the TTL or the token, whether there was a write.
        args = [arguments[0], arguments[1] if "PX" in body or "pexpire" in body else args[2]]
        args.append("1" if arguments[3] == "1" else "0")
    mine, yours = store.copy(), store.copy()
    mine.now_ms = yours.now_ms = store.now_ms
    in_lua = outcome(lambda: evaluate(Machine(yours), body, KEYS, args), yours)
    try:
        in_python = outcome(lambda: known(mine, KEYS, args), mine)
    except (TypeError, ValueError):
        # Python's words for what Lua calls arithmetic on nil.
        in_python = "an error", mine.dump()
    assert in_python == in_lua


def test_a_script_is_run_in_lua_as_redis_runs_it():
    store = Machine(Store())
    assert evaluate(store, "return {1, 2.9, 'x', false, 4}", [], []) == [1, 2, "x", None, 4]
    assert evaluate(store, "return redis.call('set', KEYS[1], ARGV[1])", ["a"], ["b"]) == "OK"
    assert evaluate(store, "return redis.call('get', 'none') == false", [], []) == 1
    assert evaluate(store, "return redis.pcall('incr', KEYS[1])['err'] ~= nil", ["a"], []) == 1
    with pytest.raises(CommandError, match="not an integer"):
        evaluate(store, "return redis.call('incr', KEYS[1])", ["a"], [])
    with pytest.raises(CommandError, match="compiling"):
        evaluate(store, "return (", [], [])
