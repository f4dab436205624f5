# ruff: noqa: E501  (snippets, each a few lines long)
"""Measures the overhead of adapters: acquire and release through one, relative to the bare calls.

    make bench-adapters

Both run in one process on a client's node, in the library's own environment, in turn, on
uncontended locks. The bare side makes the calls that a user of the library would make; for the
built-in locks, the requests of the algorithm, by the same client. The bound applies to the ratio of
the median times.
"""

from __future__ import annotations

import argparse
import json
import sys

from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.provision import brought_up
from fencepost.harness.command.screen import say
from fencepost.harness.execute.site import RunSite
from fencepost.harness.spec.spec import Spec
from fencepost.node.places import CODE_PATH, LIBRARIES, PYTHON
from fencepost.workloads.locks.registry import LOCKS

BOUND = 1.15
TURN_S = 0.25
TURNS = 16

# Each defines `pair`, which acquires and releases the lock; `at` has the servers' addresses.
BARE = {
    "redis": """
import redis
r = redis.Redis(*at[0], decode_responses=True)
free = r.register_script("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0")
def pair():
    mine = os.urandom(20).hex()
    assert r.set('bare', mine, nx=True, px=10000)
    assert free(['bare'], [mine])
""",
    "redlock": """
import redis
servers = [redis.Redis(*a, decode_responses=True) for a in at]
free = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
def pair():
    mine = os.urandom(20).hex()
    assert sum(bool(r.set('bare', mine, nx=True, px=10000)) for r in servers) >= 3
    for r in servers:
        r.eval(free, 1, 'bare', mine)
""",
    "zookeeper": """
from kazoo.client import KazooClient
z = KazooClient(','.join(f'{h}:{p}' for h, p in at), timeout=10)
z.start()
z.ensure_path('/bare')
def pair():
    mine = z.create('/bare/' + os.urandom(8).hex() + '-lock-', ephemeral=True, sequence=True)
    assert len(z.get_children('/bare')) == 1
    z.exists(mine)
    z.sync('/')
    z.delete(mine)
""",
    "etcd": """
import urllib3
pool = urllib3.HTTPConnectionPool(*at[0])
def ask(path, body):
    return json.loads(pool.request('POST', '/v3/' + path, body=json.dumps(body)).data.split(b'\\n')[0])
lease = ask('lease/grant', {'TTL': '60'})['ID']
key, end = base64.b64encode(b'bare/x').decode(), base64.b64encode(b'bare0').decode()
created = {'key': key, 'target': 'CREATE', 'result': 'EQUAL'}
def pair():
    put = {'compare': [{**created, 'create_revision': '0'}], 'success': [{'request_put': {'key': key, 'lease': lease}}]}
    revision = ask('kv/txn', put)['header']['revision']
    ask('kv/range', {'key': base64.b64encode(b'bare/').decode(), 'range_end': end, 'sort_order': 'DESCEND',
                     'sort_target': 'CREATE', 'max_create_revision': str(int(revision) - 1), 'limit': '1'})
    ask('lease/keepalive', {'ID': lease})
    assert ask('kv/range', {'key': key})['kvs'][0]['create_revision'] == revision
    gone = {'compare': [{**created, 'create_revision': revision}], 'success': [{'request_delete_range': {'key': key}}]}
    assert ask('kv/txn', gone)['succeeded']
""",
    "postgres": """
import psycopg
c = psycopg.connect(host=at[0][0], port=at[0][1], user='postgres', autocommit=True)
def pair():
    c.execute('SELECT pg_advisory_lock(%s)', [42])
    c.execute('SELECT 1')
    assert c.execute('SELECT pg_advisory_unlock(%s)', [42]).fetchone()[0]
""",
    "redis-py": """
import redis
r = redis.Redis(*at[0])
def pair():
    lock = r.lock('bare', timeout=10.0, blocking_timeout=10)
    assert lock.acquire()
    lock.release()
""",
    "pottery": """
import redis
from pottery import Redlock
masters = {redis.Redis(*a) for a in at}
def pair():
    lock = Redlock(key='bare', masters=masters, auto_release_time=10.0)
    assert lock.acquire(timeout=10)
    lock.release()
""",
    "redlock-py": """
import redis
from redlock import Redlock
locks = Redlock([redis.Redis(*a) for a in at], 10, 0.1)
def pair():
    lock = locks.lock('bare', 10000)
    assert lock
    locks.unlock(lock)
""",
    "python-redis-lock": """
import redis, redis_lock
r = redis.Redis(*at[0])
def pair():
    lock = redis_lock.Lock(r, 'bare', expire=10)
    assert lock.acquire(timeout=10)
    lock.release()
""",
    "kazoo": """
from kazoo.client import KazooClient
z = KazooClient(','.join(f'{h}:{p}' for h, p in at), timeout=10)
z.start()
def pair():
    lock = z.Lock('/bare')
    assert lock.acquire(timeout=10)
    z.exists(lock.path + '/' + lock.node).czxid  # the token
    lock.release()
""",
    "aetcd": """
import aetcd, asyncio, threading
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
def run(work):
    return asyncio.run_coroutine_threadsafe(work, loop).result()
async def client():
    return aetcd.Client(*at[0])
c = run(client())
def pair():
    lock = c.lock(b'bare', 10)
    assert run(lock.acquire(timeout=10))
    assert run(lock.release())
""",
    "etcd3gw": """
from etcd3gw import Etcd3Client
c = Etcd3Client(*at[0])
def pair():
    lock = c.lock('bare', 10)
    assert lock.acquire()
    lock.release()
""",
}  # fmt: skip

PROGRAM = """
import base64, json, os, statistics, sys, threading, time
from random import Random
setup = json.loads(sys.argv[1])
at = [tuple(address) for address in setup["addresses"].values()]
exec(setup["bare"])
from fencepost.workloads.contract.lock import Env
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.transport.redis_link import RedisLink
env = Env(
    now=time.monotonic_ns, sleep=time.sleep, random=Random(1),
    connect=lambda node, timeout: RedisLink(*setup["addresses"][node], timeout),
    address=lambda node: tuple(setup["addresses"][node]), failpoint=lambda point: None,
    background=lambda work: threading.Thread(target=work, daemon=True).start(),
    renewed=lambda secret, deadline: None, lost=lambda secret, why: None, expired=lambda why: None,
)
lock = LOCKS[setup["lock"]].make(env, list(setup["addresses"]), setup["options"])
def ours():
    lock.release(lock.acquire("bench", 10_000_000_000))
def turn(once):
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < setup["turn_s"]:
        once()
        count += 1
    return (time.perf_counter() - begun) / count
rows = [(turn(pair), turn(ours)) for _ in range(setup["turns"] + 1)][1:]
bare, through = (statistics.median(column) for column in zip(*rows))
ratio = statistics.median(after / before for before, after in rows)
print(json.dumps({"bare_ms": bare * 1e3, "adapter_ms": through * 1e3, "ratio": ratio}), flush=True)
os._exit(0)
"""


def measure(name: str, cluster: ComposeCluster) -> dict[str, float]:
    """Return milliseconds per pair on both sides, and their ratio."""
    lock = LOCKS[name]
    options = lock.read_options({})
    if "node_timeout_ms" in options:
        options["node_timeout_ms"] = max(1000, options["node_timeout_ms"])
    spec = Spec("bench", name, options, concurrency=1, ttl_ms=10_000, time_s=1)
    site = RunSite(spec, cluster, _NoHistory())
    site.prepare()
    python = f"{LIBRARIES}/{lock.library}/bin/python" if lock.library else PYTHON
    setup = {
        "lock": name,
        "options": options,
        "addresses": {node: (site.address(node), site.port(node)) for node in spec.servers},
        "bare": BARE[name],
        "turn_s": TURN_S,
        "turns": TURNS,
    }
    done = cluster.remote("client-1").run(
        ["env", f"PYTHONPATH={CODE_PATH}", python, "-c", PROGRAM, json.dumps(setup)],
        timeout_s=60 + 4 * TURN_S * TURNS,
    )
    found: dict[str, float] = json.loads(done.out.strip().splitlines()[-1])
    return found


class _NoHistory(Recorder):
    """Records nothing."""

    def __init__(self) -> None:
        self.origin_ns = 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("locks", nargs="*", help=f"of {', '.join(BARE)}; without any: all")
    chosen = parser.parse_args().locks or list(BARE)
    if unknown := [name for name in chosen if name not in BARE]:
        parser.error(f"no bare calls for {', '.join(unknown)}")
    specs = [Spec("bench", name, LOCKS[name].read_options({}), concurrency=1) for name in chosen]
    nodes = dict.fromkeys(node for spec in specs for node in (*spec.servers, "storage", "client-1"))
    with brought_up(nodes, say) as cluster:
        found = {name: measure(name, cluster) for name in chosen}
    print(f"{TURNS} turns of {TURN_S:g} s on each side, medians; bound: <= {BOUND}")
    print(f"{'lock':20} {'bare ms':>9} {'adapter ms':>11} {'ratio':>6}")
    for name, row in found.items():
        mark = "" if row["ratio"] <= BOUND else "  over the bound"
        print(
            f"{name:20} {row['bare_ms']:9.3f} {row['adapter_ms']:11.3f} {row['ratio']:6.2f}{mark}"
        )
    return int(any(row["ratio"] > BOUND for row in found.values()))


if __name__ == "__main__":
    sys.exit(main())
