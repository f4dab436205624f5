"""The model of Redis agrees with fakeredis, a second and independent implementation.

Both get the same random commands, at the same time of one clock, as Redis 7.0. Replies are compared
as values: test_redis_dialogue.py compares their bytes, and the words of errors, with a real server.
Where the two differ, Redis 7.0 decides, and `differs` names the reason: the model agreed with
redis-server 7.0.15 on these commands.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import fakeredis
import pytest
from redis.exceptions import ResponseError

from fencepost.hunt.models.redis.stream_ids import is_id
from tests.hunt.models.redis_dialogue import KEYS, Commands, Model, packed

DIALOGUES, LENGTH = 40, 250
CLOCKS = ("model._stream", "commands_mixins.streams_mixin")
ERROR = "error"
BLOCKING = frozenset({"BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX", "BLMOVE", "BRPOPLPUSH"})
LATER = frozenset({
    "inactive", "idmp-duration", "idmp-maxsize", "pids-tracked", "iids-tracked", "iids-added",
    "iids-duplicates",
})  # fmt: skip
"""What XINFO shows since Redis 7.2 and 8.6."""


def drawn(commands: Commands, random: Random) -> list[str]:
    """Draw a command. Each type has keys of its own, because fakeredis checks the types of few."""
    what = random.random()
    if what < 0.6:
        return commands._stream()
    if what < 0.65:
        return ["XINFO", "CONSUMERS", random.choice(KEYS), random.choice("gh")]
    one, other = random.sample(("l", "k"), 2)
    scored, another = random.sample(("z", "y"), 2)
    score, name = random.choice(("1", "2", "-1", "0.5", "1e3")), random.choice("mno")
    return random.choice((
        ["LPUSH", one, name], ["RPUSH", one, name, "y"], ["LPOP", one], ["RPOP", one, "2"],
        ["LTRIM", one, "0", "1"], ["LRANGE", one, "0", "-1"], ["LLEN", one],
        ["BLPOP", one, other, "1"], ["BRPOP", other, one, "1"], ["BLPOP", one, "-1"],
        ["BRPOP", one, "x"], ["ZADD", scored, score, name], ["ZADD", scored, "1", "m", "2", "n"],
        ["ZINCRBY", scored, score, name], ["ZRANGE", scored, "0", "-1", "WITHSCORES"],
        ["ZPOPMIN", scored], ["ZPOPMAX", scored, "2"], ["BZPOPMIN", scored, another, "1"],
        ["BZPOPMAX", another, scored, "1"], ["BZPOPMAX", scored, "-1"], ["BZPOPMIN", scored, "x"],
        ["DEL", one], ["DEL", scored], ["TYPE", one], ["LPUSHX", one, name], ["RPUSHX", one, "y"],
        ["LINDEX", one, score], ["LINDEX", one, "-2"], ["LSET", one, "1", name],
        ["LREM", one, "-1", "y"], ["LREM", one, "0", name], ["LMOVE", one, other, "LEFT", "RIGHT"],
        ["RPOPLPUSH", one, one], ["RPOPLPUSH", other, one],
        ["BLMOVE", one, other, "RIGHT", "LEFT", "1"], ["BRPOPLPUSH", one, other, "1"],
    ))  # fmt: skip


def differs(words: list[str]) -> str:
    """Say why fakeredis 2.40 does not answer a command as Redis 7.0 does; "": it does."""
    name, *rest = words
    if "ZPOP" in name and rest[0] in KEYS:
        return "it does not check the type of the key"
    if name in ("XREAD", "XREADGROUP"):
        named = rest[rest.index("STREAMS") + 1 :]
        keys, ids = named[: len(named) // 2], named[len(named) // 2 :]
        if len(set(keys)) < len(keys):
            return "it returns a stream once that is named twice"
        if not all(is_id(one) or one in ("$", ">") for one in ids):
            return "it reads after + (as Redis does since 7.4), - and (1-0"
        if name == "XREADGROUP" and "COUNT" in rest and int(rest[rest.index("COUNT") + 1]) < 1:
            return "it takes a COUNT of 0 for a limit"
    if name in ("XACK", "XDEL", "XCLAIM"):
        ids = rest[{"XACK": 2, "XDEL": 1, "XCLAIM": 4}[name] :]
        listed = [one for one in ids if re.match(r"[\d(]|[-+$x]\Z", one)]
        if not all(map(is_id, listed)):
            return "it acts on an ID before it refuses a later one, and ignores others"
        if name == "XDEL" and len({one.removesuffix("-0") for one in ids}) < len(ids):
            return "XDEL raises IndexError if an ID comes twice"
        if name == "XCLAIM" and "LASTID" in words:
            return "it ignores LASTID"
    if name == "XAUTOCLAIM":
        if not is_id(rest[4]):
            return "it does not take -, + and (1-0 for a start"
        if "COUNT" in rest and int(rest[rest.index("COUNT") + 1]) < 1:
            return "it raises IndexError if COUNT is not positive"
    if "ENTRIESREAD" in words:
        return "it counts entries afresh if the group has not reached the first one, as Redis later"
    if words[:2] == ["XGROUP", "SETID"]:
        return "it counts an entry that is given to another consumer for both"
    if words[:2] == ["XGROUP", "CREATECONSUMER"]:
        return "as Redis since 7.2 it makes consumers that were given nothing"
    return ""


def value(reply: Any, words: list[str]) -> Any:
    """Return a reply as it is compared: without what later versions of Redis changed, and without
    the difference between an empty list and none."""
    if words[0] == "XINFO" and isinstance(reply, list):
        # fakeredis counts no nodes of radix trees, and makes consumers as Redis does since 7.2.
        gone = {*LATER, "radix-tree-keys", "radix-tree-nodes", "consumers", "idle"}
        if words[1] == "STREAM":
            return _fields(reply, gone)
        found = sorted((_fields(one, gone) for one in reply), key=lambda one: one["name"])
        if words[1] == "CONSUMERS":
            found = [one for one in found if one["pending"]]
        return found
    if words[0] == "XPENDING" and len(words) == 3 and isinstance(reply, list) and reply[3]:
        # Redis gives the number of entries of a consumer as a text.
        reply = [*reply[:3], [[name, int(many)] for name, many in reply[3]]]
    return _plain(reply)


def _fields(reply: list[Any], gone: set[str]) -> dict[str, Any]:
    pairs = zip(reply[::2], reply[1::2], strict=True)
    return {name: _plain(one) for name, one in pairs if name not in gone}


def _plain(reply: Any) -> Any:
    if isinstance(reply, ResponseError):
        return ERROR
    if isinstance(reply, list | tuple):
        return [_plain(one) for one in reply] or None
    return reply


def parsed(data: bytes) -> Any:
    """Return the value of a RESP2 reply."""
    found, rest = _parsed(data)
    assert not rest
    return found


def _parsed(data: bytes) -> tuple[Any, bytes]:
    head, rest = data.split(b"\r\n", 1)
    kind, body = head[:1], head[1:].decode()
    if kind == b"-":
        return ERROR, rest
    if kind == b"+":
        return body, rest
    if kind == b":":
        return int(body), rest
    many = int(body)
    if many < 0:
        return None, rest
    if kind == b"$":
        return rest[:many].decode(), rest[many + 2 :]
    found = []
    for _ in range(many):
        one, rest = _parsed(rest)
        found.append(one)
    return found, rest


class Fake:
    """fakeredis, with one connection."""

    def __init__(self) -> None:
        server = fakeredis.FakeServer(version=(7,))
        client = fakeredis.FakeRedis(server=server, decode_responses=True, protocol=2)
        self._connection = client.connection_pool.get_connection()

    def ask(self, words: list[str]) -> Any:
        self._connection.send_command(*words)
        try:
            return self._connection.read_response()
        except ResponseError:
            return ERROR


def play(monkeypatch: pytest.MonkeyPatch, seed: int, counts: dict[str, int]) -> None:
    random, model, fake = Random(seed), Model(1), Fake()
    server, commands = model.server, Commands(random)
    for clock in CLOCKS:
        monkeypatch.setattr(
            f"fakeredis.{clock}.current_time", lambda: server.clock.ms(server.world.now)
        )
    for number in range(LENGTH):
        words = drawn(commands, random)
        if random.random() < 0.1:
            server.world.now += random.randrange(3_600_000 // 4) * 1_000_000
        if differs(words):
            continue
        if words[0] in BLOCKING and _would_wait(model, words):
            # Inside of a transaction no command waits.
            model.send(0, packed(["MULTI"]) + packed(words) + packed(["EXEC"]))
            mine = parsed(model.received()[0].split(b"+QUEUED\r\n")[1])
            theirs = [fake.ask(one) for one in (["MULTI"], words, ["EXEC"])][-1]
        else:
            model.send(0, packed(words))
            mine, theirs = parsed(model.received()[0]), fake.ask(words)
        name = " ".join(words[:2]) if words[0] in ("XGROUP", "XINFO") else words[0]
        counts[name] = counts.get(name, 0) + 1
        assert value(mine, words) == value(theirs, words), (
            f"seed {seed}, command {number}: {words}: {mine!r}, and from fakeredis {theirs!r}"
        )


def _would_wait(model: Model, words: list[str]) -> bool:
    """Whether none of the keys has a value."""
    keys = words[1:2] if words[0] in ("BLMOVE", "BRPOPLPUSH") else words[1:-1]
    return not any(key in model.server.store.values for key in keys)


def test_streams_lists_and_sorted_sets_are_those_of_fakeredis(monkeypatch):
    counts: dict[str, int] = {}
    for seed in range(DIALOGUES):
        play(monkeypatch, seed, counts)
    for name in ("XREADGROUP", "XACK", "XCLAIM", "XAUTOCLAIM", "XPENDING", "XINFO GROUPS",
                 "XINFO CONSUMERS", "XINFO STREAM", *BLOCKING):  # fmt: skip
        assert counts[name] > 30, (name, counts)
