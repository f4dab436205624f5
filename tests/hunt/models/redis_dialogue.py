"""Random dialogues of several connections with the model of Redis and with a real server.

Commands touch a few keys and channels, so that watches, subscriptions and notifications meet. After
each command every connection must have received the same bytes from both. Nothing depends on the
order of Redis' hash tables: no connection has two patterns, and lists of names are compared sorted.
No key expires by itself, because the clocks are not the same; keys expire in the past.
"""

from __future__ import annotations

import socket
from random import Random

from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.world import Node, World

KEYS, CHANNELS, VALUES = ("a", "b", "c"), ("a", "x", "news"), ("1", "x", "-3", "2.5", "")
EVENTS = ("", "KEA", "Kg$", "Ex", "Elz", "KEh", "Ks", "KElg")
PATTERNS = ("a*", "__key*__:*", "__keyspace@0__:a", "[xy]", "*")
UNORDERED = ("KEYS", "SMEMBERS", "SCAN", "SSCAN", "UNSUBSCRIBE", "PUBSUB")
RESP3 = 3
"""The number of the connection that speaks RESP3."""


class Commands:
    """Draws commands, more often valid than invalid."""

    def __init__(self, random: Random):
        self._random = random
        self._has_pattern: set[int] = set()
        self._in_multi: set[int] = set()

    def draw(self, connection: int) -> list[str]:
        random = self._random
        what = random.random()
        if what < 0.12:
            return self._subscribe(connection)
        if what < 0.32:
            return self._transact(connection)
        if what < 0.40:
            return ["PUBLISH", random.choice(CHANNELS), random.choice(VALUES)]
        if what < 0.42:
            return ["CONFIG", "SET", "notify-keyspace-events", random.choice(EVENTS)]
        if what < 0.45:
            return random.choice((["PUBSUB", "NUMPAT"], ["PUBSUB", "NUMSUB", *CHANNELS], ["PING"],
                                  ["PUBSUB", "CHANNELS"], ["PING", "x"], ["DBSIZE"]))  # fmt: skip
        if what < 0.63:
            return self._stream()
        if what < 0.65:
            if connection == RESP3:
                return ["PING"]
            self._has_pattern.discard(connection)
            self._in_multi.discard(connection)
            return ["RESET"]
        return self._data()

    def _subscribe(self, connection: int) -> list[str]:
        random, channel = self._random, self._random.choice(CHANNELS)
        if connection in self._in_multi:
            return random.choice((["UNSUBSCRIBE", channel], ["UNSUBSCRIBE"], ["PUBSUB", "NUMPAT"]))
        if random.random() < 0.5:
            return random.choice((["SUBSCRIBE", channel], ["UNSUBSCRIBE", channel],
                                  ["UNSUBSCRIBE"], ["SUBSCRIBE", channel]))  # fmt: skip
        if connection in self._has_pattern:
            self._has_pattern.discard(connection)
            return ["PUNSUBSCRIBE"]
        self._has_pattern.add(connection)
        return ["PSUBSCRIBE", random.choice(PATTERNS)]

    def _transact(self, connection: int) -> list[str]:
        if connection == RESP3:  # its own messages would be inside EXEC's reply
            return self._random.choice((["WATCH", self._key()], ["UNWATCH"]))
        if connection in self._in_multi:
            word = self._random.choice(("EXEC", "EXEC", "DISCARD", "MULTI", "WATCH", "UNWATCH"))
            if word in ("EXEC", "DISCARD"):
                self._in_multi.discard(connection)
            return [word, self._key()] if word == "WATCH" else [word]
        word = self._random.choice(("WATCH", "WATCH", "WATCH", "MULTI", "MULTI", "EXEC", "UNWATCH"))
        if word == "MULTI":
            self._in_multi.add(connection)
        return [word, self._key()] if word == "WATCH" else [word]

    def _key(self) -> str:
        return self._random.choice(KEYS)

    def _data(self) -> list[str]:
        random, key, value = self._random, self._key(), self._random.choice(VALUES)
        other = self._key()
        number = random.choice(("1", "2", "-1"))
        return random.choice((
            ["SET", key, value], ["SET", key, value, "NX"], ["SET", key, value, "XX", "GET"],
            ["SET", key, value, "PX", "1000000"], ["SETNX", key, value], ["GET", key],
            ["GETSET", key, value], ["GETDEL", key], ["GETEX", key, "EX", "10000"],
            ["GETEX", key, "PERSIST"], ["GETEX", key, "PXAT", "5"], ["DEL", key, other],
            ["DEL", key], ["UNLINK", key], ["EXISTS", key], ["TYPE", key], ["INCR", key],
            ["DECRBY", key, number], ["EXPIRE", key, "1000"], ["EXPIRE", key, "-1"],
            ["PEXPIRE", key, "1000000", "NX"], ["PERSIST", key], ["HSET", key, "x", value],
            ["HSETNX", key, "x", value], ["HDEL", key, "x"], ["HINCRBY", key, "x", number],
            ["HGETALL", key], ["HKEYS", key], ["HSCAN", key, "0"], ["LPUSH", key, value],
            ["RPUSH", key, value, "y"], ["LPOP", key], ["RPOP", key, "2"],
            ["LRANGE", key, "0", "9"], ["LTRIM", key, number, "-1"], ["LTRIM", key, "0", "1"],
            ["LPUSHX", key, value], ["RPUSHX", key, value, "y"], ["LINDEX", key, number],
            ["LSET", key, number, value], ["LREM", key, number, "y"], ["LREM", key, "0", value],
            ["LMOVE", key, other, "LEFT", "right"], ["LMOVE", key, other, "RIGHT", "LEFT"],
            ["RPOPLPUSH", key, other], ["LMOVE", key, other, "UP", "LEFT"], ["BLMOVE", key, other,
            "LEFT", "LEFT", "x"], ["BRPOPLPUSH", key, other, "-1"],
            ["ZADD", key, number, "m"], ["ZADD", key, "NX", number, "n", "3", "m"],
            ["ZINCRBY", key, number, "m"], ["ZREM", key, "m", "n"], ["ZRANK", key, "m"],
            ["ZREMRANGEBYSCORE", key, "-inf", number], ["ZSCAN", key, "0"], ["ZCARD", key],
            ["SADD", key, value, "y"], ["SREM", key, value], ["SMEMBERS", key], ["SCARD", key],
            ["SISMEMBER", key, "y"], ["MSET", key, value, other, "1"], ["FLUSHALL"],
            ["MSETNX", key, value, other, "1"], ["KEYS", "*"], ["SCAN", "0", "COUNT", "1000"],
            ["EVAL", "return redis.call('set', KEYS[1], ARGV[1])", "1", key, value],
            ["EVAL", "redis.call('del', KEYS[1]) return redis.call('publish', 'x', 1)", "1", key],
        ))  # fmt: skip

    def _stream(self) -> list[str]:
        random, key, other = self._random, self._key(), self._key()
        one, two = (f"{random.randrange(1, 6)}-{random.randrange(3)}" for _ in range(2))
        name, consumer = random.choice(("g", "h")), random.choice(("x", "y"))
        count, many = str(random.randrange(-1, 4)), str(random.randrange(4))
        one = random.choice((one, one, one, one[0], "0", "-", "+", "$", "x", f"({one}"))
        return random.choice((
            ["XADD", key, f"{random.randrange(1, 9)}-{random.randrange(3)}", "f", many],
            ["XADD", key, f"{random.randrange(1, 9)}-*", "f", many, "g", "2"],
            ["XADD", key, f"{random.randrange(3, 9)}-*", "f", many],
            ["XADD", key, "NOMKSTREAM", two, "f", many],
            ["XADD", key, "MAXLEN", random.choice("=~"), many, two, "f", "1"],
            ["XADD", key, "MINID", one, two, "f", "1"], ["XADD", key, one, "f", "1", "g"],
            ["XADD", key, one, "f", "1"], ["XLEN", key], ["XDEL", key, one, two],
            ["XTRIM", key, "MAXLEN", count], ["XTRIM", key, "MINID", "=", one],
            ["XTRIM", key, "MAXLEN", "~", many, "LIMIT", count], ["XTRIM", key, "LIMIT", many],
            ["XTRIM", key, "MAXLEN", many, "MINID", one], ["XTRIM", key, "MAXLEN", many, "x"],
            ["XRANGE", key, one, two], ["XRANGE", key, "-", "+"],
            ["XRANGE", key, "-", one, "COUNT", count], ["XREVRANGE", key, "+", one],
            ["XREVRANGE", key, one, "-", "COUNT", count], ["XREAD", "STREAMS", key, "0"],
            ["XREAD", "COUNT", count, "STREAMS", key, other, one, "0"],
            ["XREAD", "STREAMS", key, one, two], ["XREAD", "GROUP", name, "x", "STREAMS", key, one],
            ["XGROUP", "CREATE", key, name, one], ["XGROUP", "CREATE", key, name, "0", "MKSTREAM"],
            ["XGROUP", "CREATE", key, name, "$", "MKSTREAM"], ["XGROUP", "DESTROY", key, name],
            ["XGROUP", "SETID", key, name, one], ["XGROUP", "CREATECONSUMER", key, name, consumer],
            ["XGROUP", "DELCONSUMER", key, name, consumer],
            *[["XREADGROUP", "GROUP", name, consumer, "STREAMS", key, ">"]] * 4,
            ["XREADGROUP", "GROUP", name, consumer, "COUNT", count, "STREAMS", key, ">"],
            ["XREADGROUP", "GROUP", name, consumer, "STREAMS", key, one],
            ["XREADGROUP", "GROUP", name, consumer, "NOACK", "STREAMS", key, other, ">", "0"],
            ["XACK", key, name, one, two], ["XACK", key, name, "5-0", "6-0", "3-1"],
            ["XPENDING", key, name], ["XPENDING", key, name, "-", "+"],
            ["XPENDING", key, name, "IDLE", "3600000", "-", one, "5"],
            ["XCLAIM", key, name, consumer, "0", one, two],
            ["XCLAIM", key, name, consumer, "3600000", "1-0", "2-0", "3-0", "JUSTID"],
            ["XCLAIM", key, name, consumer, "0", two, "FORCE"], ["TYPE", key], ["DEL", key],
            ["XCLAIM", key, name, consumer, "0", one, two, "RETRYCOUNT", count, "JUSTID"],
            ["XCLAIM", key, name, consumer, "0", two, "IDLE", "0", "LASTID", one],
            ["XAUTOCLAIM", key, name, consumer, "0", one],
            ["XAUTOCLAIM", key, name, consumer, "0", "0", "COUNT", count],
            ["XAUTOCLAIM", key, name, consumer, "0", two, "JUSTID", "COUNT", "2"],
            ["XAUTOCLAIM", key, name, consumer, "3600000", "-"],
            ["XDEL", key, two, one], ["XACK", key, name, two, one],
            ["XGROUP", "CREATE", key, name, one, "ENTRIESREAD", count],
            ["XGROUP", "SETID", key, name, two, "ENTRIESREAD", many],
            ["XINFO", "STREAM", key], ["XINFO", "GROUPS", key],
            ["BZPOPMIN", key, other, "x"], ["ZPOPMIN", key], ["BZPOPMAX", key, "-1"],
            ["ZPOPMAX", key, count],
        ))  # fmt: skip


class Line:
    """The server's end of a connection of the model; it keeps the bytes that it sends."""

    client, open = Node("client", 0), True

    def __init__(self):
        self.said = b""

    def say(self, data: bytes) -> None:
        self.said += data

    def hang_up(self) -> None:
        self.open = False


class Model:
    """The model, with connections."""

    def __init__(self, connections: int):
        self.server = RedisServer("redis-1", 0, Network(World(), None), "none")
        self.sessions = [self.server.session() for _ in range(connections)]
        self.lines = [Line() for _ in self.sessions]
        for session, line in zip(self.sessions, self.lines, strict=True):
            session.line = line

    def send(self, connection: int, data: bytes) -> None:
        session, line = self.sessions[connection], self.lines[connection]
        for command in session.commands(data):
            reply = session.execute(self.server, command)
            line.say(session.encoded(command, reply))

    def received(self) -> list[bytes]:
        found = [line.said for line in self.lines]
        for line in self.lines:
            line.said = b""
        return found


class Real:
    """A real server, with connections."""

    def __init__(self, address: tuple[str, int], connections: int):
        self.links = [socket.create_connection(address, 10) for _ in range(connections)]

    def send(self, connection: int, data: bytes) -> None:
        self.links[connection].sendall(data)

    def received(self, expected: list[bytes]) -> list[bytes]:
        """Return the received bytes; wait for as many as expected."""
        return [_read(link, len(want)) for link, want in zip(self.links, expected, strict=True)]

    def close(self) -> None:
        for link in self.links:
            link.close()


def _read(link: socket.socket, size: int) -> bytes:
    data = b""
    link.settimeout(120)
    try:
        while len(data) < size:
            part = link.recv(65536)
            if not part:
                break
            data += part
        link.setblocking(False)
        data += link.recv(65536)
    except (BlockingIOError, TimeoutError):
        pass
    return data


def packed(words: list[str]) -> bytes:
    parts = [word.encode() for word in words]
    head = b"*%d\r\n" % len(parts)
    return head + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def sides(words: list[str], data: bytes, either: bool) -> object:
    """Return received bytes as they are compared; `either`: in any order."""
    if words[0] in UNORDERED or words[0] == "EXEC" or either:
        return sorted(data.split(b"\r\n"))
    return data


def play(address: tuple[str, int], seed: int, length: int) -> dict[str, int]:
    """Compare a dialogue; return how often each command was sent, and how many messages came."""
    random = Random(seed)
    commands, connections = Commands(random), RESP3 + 1
    model, real = Model(connections), Real(address, connections)
    counts: dict[str, int] = {}
    try:
        setup = [["FLUSHALL"], ["CONFIG", "SET", "notify-keyspace-events", ""]]
        dialogue = [(0, one) for one in setup] + [(RESP3, ["HELLO", "3"])]
        for number in range(length + len(dialogue)):
            if number < len(dialogue):
                connection, words = dialogue[number]
            else:
                connection = random.randrange(connections)
                words = commands.draw(connection)
            data = packed(words)
            model.send(connection, data)
            real.send(connection, data)
            mine = model.received()
            theirs = real.received(mine)
            for place in range(connections):
                if words[0] == "HELLO":
                    continue
                # Redis sends some replies before the events of the same command, and others after.
                either = place == connection == RESP3
                one = sides(words, mine[place], either)
                other = sides(words, theirs[place], either)
                assert one == other, (
                    f"seed {seed}, command {number}, {words} of {connection}: connection {place} "
                    f"got {mine[place]!r}, and from Redis {theirs[place]!r}"
                )
                if place != connection and mine[place]:
                    counts["messages"] = counts.get("messages", 0) + 1
            name = "EXEC, touched" if mine[connection] == b"*-1\r\n" else words[0]
            counts[name] = counts.get(name, 0) + 1
    finally:
        real.close()
    return counts
