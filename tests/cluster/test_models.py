"""The models of servers that `fencepost hunt` runs locks against, compared with real servers.

Both get the same random commands, TIME before and after each, and the replies must be equal: the
model answers at the millisecond that the server's own clock shows. A difference is a bug of the
model. The test prints its seed; FENCEPOST_MODEL_SEED sets it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
import urllib3
from redis import Redis
from redis.exceptions import ResponseError

from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.hunt.models.etcd.queue import Queue
from fencepost.hunt.models.etcd.state import Refused, State
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.sim.clock import WallClock
from fencepost.hunt.sim.network import Network, Refusal
from fencepost.hunt.sim.world import World
from fencepost.workloads.transport.etcd_gateway import text
from tests.cluster.conftest import emptied
from tests.cluster.etcd_requests import EtcdRequests
from tests.cluster.redis_commands import TIMES, Commands
from tests.hunt.models.directed import RECORD
from tests.hunt.models.directed import asked as asked_directly

COMMANDS = 10_000
FULL = 5_000
SERVERS = ["redis-1", "etcd-1", "etcd-2", "etcd-3"]


@pytest.fixture(scope="module")
def redis(cluster: ComposeCluster) -> Iterator[Redis]:
    emptied(cluster, "redis")
    client = Redis(cluster.address("redis-1"), 6379, decode_responses=True, protocol=2)
    client.flushall()
    yield client
    client.close()


@pytest.fixture(scope="module")
def etcd(cluster: ComposeCluster) -> str:
    """Return the address of a server."""
    emptied(cluster, "etcd")
    return cluster.address("etcd-1")


def drawn_from() -> tuple[int, Random]:
    """Print a seed and return its commands."""
    seed = int(os.environ.get("FENCEPOST_MODEL_SEED") or time.time_ns() % 1_000_000)
    print(f"seed {seed}")
    return seed, Random(seed)


def told(command: list[str], reply: Any) -> Any:
    """Return a reply in its compared form.

    Errors of scripts lose their text, because Redis adds the place.
    """
    if isinstance(reply, ResponseError | Refusal):
        # redis-py omits the first word.
        words = str(reply).removeprefix("ERR ").removeprefix("OOM ")
        return "an error of a script" if command[0] == "EVAL" else f"error: {words}"
    parts = reply if isinstance(reply, list) else [reply]
    if command[0] == "EVAL" and any(isinstance(n, int) and abs(n) >= 2**53 for n in parts):
        return "more than Lua counts"
    return reply


def of_model(model: RedisServer, command: list[str]) -> Any:
    """Return the model's reply in its compared form."""
    try:
        reply = model.handle(_for_model(command))
        if isinstance(reply, dict):  # a map, which RESP2 has as a list
            reply = [part for pair in reply.items() for part in pair]
        return told(command, reply)
    except (TypeError, ValueError):
        # The error that Lua calls arithmetic on nil: no lock sends such arguments.
        assert command[0] == "EVAL"
        return "an error of a script"


def _for_model(command: list[str]) -> tuple[Any, ...]:
    """Return a command as fencepost's locks send it: with a whole number of keys, a script that the
    model knows runs in Python."""
    return (*command[:2], int(command[2]), *command[3:]) if command[0] == "EVAL" else tuple(command)


class Clock(WallClock):
    """A clock of the model that follows the milliseconds that the server showed."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = False
        self.shown = 0

    def ms(self, now: int) -> int:
        return self.shown

    def ns(self, now: int) -> int:
        return self.shown * 1_000_000


def test_the_recorded_replies_to_directed_commands_are_those_of_redis(
    cluster: ComposeCluster, redis: Redis
) -> None:
    found = asked_directly((cluster.address("redis-1"), 6379))
    assert {name: [list(pair) for pair in pairs] for name, pairs in found.items()} == json.loads(
        RECORD.read_text()
    )


def test_the_model_of_redis_answers_as_redis_does(redis: Redis) -> None:
    seed, random = drawn_from()
    commands = Commands(random)
    model = RedisServer("redis-1", 0, Network(World(), None), "none")
    clock = Clock()
    model.clock = clock
    answers: dict[str, int] = {}
    redis.flushall()
    for number in range(COMMANDS):
        command = commands.draw()
        mine, theirs = answered(model, clock, redis, command)
        assert mine == theirs, (
            f"seed {seed}, command {number}: {command}: {mine!r}, and not {theirs!r}"
        )
        answers[str(mine)[:20]] = answers.get(str(mine)[:20], 0) + 1
        if random.random() < 0.2:
            time.sleep(random.random() * 0.004)
    assert answers.get("OK", 0) > 50
    assert answers.get("None", 0) > 100


def test_the_model_of_a_full_redis_answers_as_redis_does(redis: Redis) -> None:
    """Send the same commands with no memory left, under noeviction."""
    seed, random = drawn_from()
    commands = Commands(random)
    model = RedisServer("redis-1", 0, Network(World(), None), "none")
    clock = Clock()
    model.clock = clock
    refused = 0
    redis.flushall()
    try:
        for number in range(FULL):
            # It stays full, so that each command has a key to write to.
            model.limit(number // 20 % 2 == 1)
            redis.config_set("maxmemory", "1" if model.store.full else "0")
            command = commands.draw()
            # Nothing expires here: a key could do so between the clock's reading and the command.
            if command[0] == "PEXPIREAT" or any(word in TIMES[:8] for word in command[1:]):
                continue
            mine, theirs = answered(model, clock, redis, command)
            assert mine == theirs, (
                f"seed {seed}, command {number}: {command}: {mine!r}, and not {theirs!r}"
            )
            refused += "not allowed when used memory" in str(mine)
    finally:
        redis.config_set("maxmemory", "0")
        redis.flushall()
    assert refused > 100


def answered(model: RedisServer, clock: Clock, redis: Redis, command: list[str]) -> tuple[Any, Any]:
    """Return the model's answer and the server's, at the same millisecond."""
    before, reply, after = asked(redis, command)
    clock.shown = model.store.now_ms = before
    kept = model.store.copy()
    mine, theirs = of_model(model, command), told(command, reply)
    if mine != theirs and after != before:
        # The millisecond changed while the server executed the command.
        kept.now_ms = clock.shown = after
        model.store = kept
        mine = of_model(model, command)
    if after != before:
        catch_up(model, redis)
    return mine, theirs


def catch_up(model: RedisServer, redis: Redis) -> None:
    """Copy expiry times from the server: either of two milliseconds may be the start of a TTL."""
    for key in list(model.store.expires):
        before, left, after = asked(redis, ["PTTL", key])
        while before != after:
            before, left, after = asked(redis, ["PTTL", key])
        if left >= 0:
            model.store.expires[key] = before + left
        else:
            model.store.delete(key)


def asked(redis: Redis, command: list[str]) -> tuple[int, Any, int]:
    """Return the reply, and the milliseconds that the server showed before and after."""
    connection = redis.connection_pool.get_connection()
    try:
        packed = connection.pack_commands([("TIME",), tuple(command), ("TIME",)])
        connection.send_packed_command(packed)
        replies = []
        for _ in range(3):
            try:
                replies.append(connection.read_response())
            except ResponseError as error:
                replies.append(error)
        before, reply, after = replies
        return *(_ms(before), reply), _ms(after)
    finally:
        redis.connection_pool.release(connection)


def _ms(told_time: Any) -> int:
    seconds, micros = told_time
    return int(seconds) * 1000 + int(micros) // 1000


def plainly(answer: Any) -> Any:
    """Return an answer without the fields that identify the cluster."""
    if isinstance(answer, dict):
        left_out = ("cluster_id", "member_id", "raft_term")
        return {name: plainly(one) for name, one in answer.items() if name not in left_out}
    return [plainly(one) for one in answer] if isinstance(answer, list) else answer


# etcd takes 6 ms for each, on a processor that other tests need as well.
@pytest.mark.parametrize("commands", [3_000, pytest.param(COMMANDS, marks=pytest.mark.long)])
def test_the_model_of_etcd_answers_as_etcd_does(etcd: str, commands: int) -> None:
    seed, random = drawn_from()
    requests, model = EtcdRequests(random), State()
    pool = urllib3.HTTPConnectionPool(etcd, 2379, timeout=10.0)
    begun = json.loads(pool.request("POST", "/v3/kv/range", body='{"key":"eA=="}').data)
    model.revision = int(begun["header"]["revision"])
    refused = 0
    for number in range(commands):
        path, body = requests.draw()
        reply = pool.request("POST", f"/v3/{path}", body=json.dumps(body))
        theirs = json.loads(reply.data)
        try:
            mine: Any = model.execute(path, body, 0)
        except Refused as error:
            mine, theirs = (error.code, str(error)), (theirs.get("code"), theirs.get("message"))
            refused += 1
        assert mine == plainly(theirs), f"seed {seed}, request {number}: {path} {body}"
    assert refused > commands // 100


LOCKS_ASKED = 1_000


def test_the_model_of_etcd_s_lock_service_answers_as_etcd_does(etcd: str) -> None:
    """One client at a time, which requests free locks or its own, with existing leases and others.

    It unlocks locks that are held and locks that are not.
    """
    seed, random = drawn_from()
    model = State()
    queue = Queue(model, looks=True)
    pool = urllib3.HTTPConnectionPool(etcd, 2379, timeout=10.0)

    def asked(path: str, body: dict[str, Any]) -> Any:
        return json.loads(pool.request("POST", f"/v3/{path}", body=json.dumps(body)).data)

    model.revision = int(asked("kv/range", {"key": text("x")})["header"]["revision"])
    leases = range(21, 24)
    for lease in leases[:2]:
        grant = {"TTL": "3600", "ID": str(lease)}
        assert plainly(asked("lease/grant", grant)) == model.execute("lease/grant", grant, 0)
    for number in range(LOCKS_ASKED):
        name, lease = f"service/{random.randrange(3)}", random.choice(leases)
        # Only the first in the queue is granted; any other would wait for ever.
        free = not model.older(f"{name}/".encode(), model.revision + 1)
        if free or random.random() < 0.5:
            mine = f"{name}/{lease:x}".encode()
            if not free and mine not in model.keys:
                continue
            body = {"name": text(name), "lease": str(lease)}
            theirs = asked("lock/lock", body)
            try:
                queue.enter(Any, Any, body)  # type: ignore[arg-type]
                (waiter,) = queue.due()
                answer: Any = queue.answer(waiter)
            except Refused as error:
                answer, theirs = str(error), theirs.get("message")
        else:
            body = {"key": text(f"{name}/{lease:x}")}
            theirs, answer = asked("lock/unlock", body), model.execute("lock/unlock", body, 0)
        assert answer == plainly(theirs), f"seed {seed}, request {number}: {body}"


def test_a_waiter_of_the_lock_service_with_an_ended_lease_gets_the_model_s_answer(
    etcd: str,
) -> None:
    pool = urllib3.HTTPConnectionPool(etcd, 2379, timeout=10.0, maxsize=2)

    def asked(path: str, body: dict[str, Any]) -> Any:
        return json.loads(pool.request("POST", f"/v3/{path}", body=json.dumps(body)).data)

    for lease in (31, 32):
        asked("lease/grant", {"TTL": "3600", "ID": str(lease)})
    first = asked("lock/lock", {"name": text("ended"), "lease": "31"})
    with ThreadPoolExecutor() as threads:
        waits = threads.submit(asked, "lock/lock", {"name": text("ended"), "lease": "32"})
        mine = text("ended/20")
        while not asked("kv/range", {"key": mine}).get("kvs"):
            time.sleep(0.01)
        asked("lease/revoke", {"ID": "32"})
        asked("lock/unlock", {"key": first["key"]})
        assert waits.result(10)["message"] == "mutex: session is expired"
