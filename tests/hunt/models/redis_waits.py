"""Clients that wait for a list or a sorted set, at the model of Redis and at a real server.

Some connections ask for elements, others push, in scripts and transactions too; some close. Each
must get the same answers in the same order. Short waits end in a silence that is longer than they
are, so that no order depends on the machine.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

from redis import Connection, Redis
from redis.exceptions import ResponseError

from fencepost.hunt.models.redis.replies import NoList
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.sim.network import LATER, Network, Refusal, Request
from fencepost.hunt.sim.world import Node, World

CLIENTS = 5
KEYS, SCORED = ("a", "b", "c"), ("p", "q")
ERROR = "error"
_MOVES = ("BLMOVE", "BRPOPLPUSH")
SHORT_S, SILENCE_S = 0.3, 0.6
# python-redis-lock signals a release to its waiters in this way.
TELLS = """
redis.call('del', KEYS[1])
redis.call('lpush', KEYS[1], 1)
redis.call('pexpire', KEYS[1], 100000)
return redis.call('llen', KEYS[2])
"""


class Model:
    """The model, with connections that may wait."""

    class Link:
        def __init__(self, model: Model) -> None:
            self.network, self.server = model.network, model.server
            self.client = Node("client", 0)
            self.ends, self.latency = (0, 0), 0
            self.command: tuple[Any, ...] = ()

        def arrived(self, request: Request) -> None: ...
        def moved(self, request: Request, late: Request) -> None: ...
        def reset(self) -> None: ...

    def __init__(self) -> None:
        self.world = World()
        self.network = Network(self.world, None)
        self.server = RedisServer("redis-1", 0, self.network, "none")
        self.begun = time.monotonic()

    def opened(self) -> Link:
        return self.Link(self)

    def ask(self, link: Link, command: list[str]) -> Any:
        """Return the reply, or the request that waits for one."""
        self.pass_time()
        reply = self.server.handle(tuple(command))
        if reply is not LATER:
            return reply
        request = Request(link, tuple(command), self.world.now, 0)
        self.server.wait(request)
        return request

    def together(self, commands: list[list[str]]) -> list[Any]:
        self.pass_time()
        with self.server.together():
            return [self.server.handle(tuple(one)) for one in commands]

    def closed(self, link: Link) -> None:
        self.pass_time()
        self.server.left(link)

    def pass_time(self) -> None:
        """Let events happen that are due by now."""
        world, now = self.world, round((time.monotonic() - self.begun) * 1e9)
        while world.queue and world.queue[0][0] <= now:
            at, _, event = world.queue.pop(0)
            world.now = max(at, world.now)
            world.queue.sort(key=lambda one: one[:2])
            if not event.off and not isinstance(event, Request):
                event.due()
        world.now = now


class Waiting:
    """A connection to both, on which a request is in flight."""

    def __init__(self, address: tuple[str, int], model: Model) -> None:
        self.address, self.model = address, model
        self.open()

    def open(self) -> None:
        host, port = self.address
        self.real = Connection(host=host, port=port, protocol=2, decode_responses=True)
        self.real.connect()
        self.link = self.model.opened()
        self.asked: Any = None
        self.until_s: float | None = None

    def ask(self, command: list[str], lasts_s: float | None) -> None:
        self.asked = self.model.ask(self.link, command)
        self.until_s = None if lasts_s is None else time.monotonic() + lasts_s
        self.real.send_command(*command)
        time.sleep(0.002)  # it has arrived before the others' next requests

    @property
    def mine(self) -> Any:
        """Return the model's answers so far."""
        one = self.asked
        if isinstance(one, Request):
            one = one.reply if one.answered else "nothing yet"
        return ERROR if isinstance(one, Refusal) else None if isinstance(one, NoList) else one

    def theirs(self, wait_s: float) -> Any:
        try:
            return self.real.read_response() if self.real.can_read(wait_s) else "nothing yet"
        except ResponseError:
            return ERROR

    def close(self) -> None:
        self.real.disconnect()
        self.model.closed(self.link)
        time.sleep(0.01)  # the server has received it
        self.open()


def play(address: tuple[str, int], random: Random, steps: int) -> dict[str, int]:
    """Execute this number of actions; return how many waits ended in which way."""
    redis = Redis(*address, decode_responses=True, protocol=2)
    redis.flushall()
    model, ends = Model(), {"served": 0, "over": 0, "closed": 0}
    clients = [Waiting(address, model) for _ in range(CLIENTS)]
    pusher = model.opened()
    for number in range(steps):
        ends_soon = [one.until_s for one in clients if one.until_s is not None]
        silent = bool(ends_soon) and random.random() < 0.2
        if silent or (ends_soon and min(ends_soon) < time.monotonic() + 0.1):
            time.sleep(SILENCE_S)
            model.pass_time()
        _compare(number, clients, ends)
        free = [one for one in clients if one.asked is None]
        busy = [one for one in clients if one.asked is not None]
        what = random.random()
        if free and what < 0.5:
            name = random.choice(("BLPOP", "BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX"))
            among = SCORED if "Z" in name else KEYS
            keys = random.sample(among, min(len(among), random.choice((1, 1, 2, 3))))
            short = random.random() < 0.1
            if what < 0.1:
                name, keys = random.choice(_MOVES), random.sample(KEYS, 2)
                if random.random() < 0.2:
                    keys[1] = "p"  # a sorted set, if it exists
                keys += ["LEFT", random.choice(("LEFT", "RIGHT"))] * (name == "BLMOVE")
            random.choice(free).ask(
                [name, *keys, str(SHORT_S) if short else random.choice(("0", "1000"))],
                SHORT_S if short else None,
            )
        elif busy and what < 0.55:
            random.choice(busy).close()
            ends["closed"] += 1
        elif what < 0.65:
            commands = [_push(random) for _ in range(random.choice((1, 2, 3)))]
            if random.random() < 0.5:
                more = (["DEL", "a"], ["DEL", "p"], ["BLPOP", "b", "c", "1"])
                commands.append(random.choice(more))
            mine = [_plain(one) for one in model.together(commands)]
            with redis.pipeline() as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                theirs = [_plain(one) for one in pipe.execute(raise_on_error=False)]
            assert mine == theirs, f"step {number}: {commands}: {mine!r}, and not {theirs!r}"
        else:
            command = _push(random)
            if what > 0.9:
                command = ["EVAL", TELLS, "2", *random.sample(KEYS, 2)]
            mine = _plain(model.ask(pusher, command))
            theirs = _plain(_asked(redis, command))
            assert mine == theirs, f"step {number}: {command}: {mine!r}, and not {theirs!r}"
    for one in clients:
        one.real.disconnect()
    redis.close()
    return ends


def _push(random: Random) -> list[str]:
    if random.random() < 0.4:
        members = random.sample("klmno", random.choice((1, 1, 2, 3)))
        scored = (word for one in members for word in (random.choice(("1", "2", "0.5")), one))
        return ["ZADD", random.choice(SCORED), *scored]
    values = [str(random.randrange(100)) for _ in range(random.choice((1, 1, 2, 3)))]
    return [random.choice(("LPUSH", "RPUSH")), random.choice(KEYS), *values]


def _asked(redis: Redis, command: list[str]) -> Any:
    try:
        return redis.execute_command(*command)
    except ResponseError as error:
        return error


def _plain(reply: Any) -> Any:
    """Return a reply in the form in which those of both are compared."""
    if isinstance(reply, Refusal | ResponseError):
        return ERROR  # a move may have made a list of a key that had a sorted set
    return list(reply) if isinstance(reply, tuple) else reply


def _compare(number: int, clients: list[Waiting], ends: dict[str, int]) -> None:
    for place, one in enumerate(clients):
        if one.asked is None:
            continue
        mine = one.mine
        # Answers that were sent are on their way; no other answer may arrive.
        theirs = one.theirs(0 if mine == "nothing yet" else 5)
        assert _plain(theirs) == mine, f"step {number}, client {place}: {mine!r}, not {theirs!r}"
        if mine != "nothing yet":
            assert mine is not None or one.until_s is not None
            ends["over" if mine is None else "served"] += 1
            one.asked = one.until_s = None
