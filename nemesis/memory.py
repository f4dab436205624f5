"""Memory: a Redis server reaches its limit while other data comes in.

Under `allkeys-lru` it evicts the least recently used keys, a lock's key included: an evicted lock
is a lost lock. Under `noeviction` it keeps its data and refuses every write, a lock's as well.
`arguments.policy` names the policy. The limit is slightly above the server's current use; the
incoming data is the nemesis' own, and is removed with the fault.
"""

from __future__ import annotations

import time
from functools import partial
from random import Random
from typing import Any

from fencepost.nemesis.family import Colour, Family
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Leftover, Receipt
from fencepost.nemesis.site import Remote, Server, Site
from fencepost.nemesis.targets import Drawn, Layout, pick
from fencepost.nemesis.turns import deal

POLICIES = ("allkeys-lru", "noeviction")
_ROOM = 2 << 20  # bytes above the current use
_VALUE = 10 << 10
# Five times the space: of keys that were not used since, practically none survives.
_KEYS = 5 * _ROOM // _VALUE
_BATCH = 64
_OLDER_S = 3.0
_PREFIX = "fencepost:fill:"
_FILL = """
for i = ARGV[1], ARGV[1] + ARGV[2] - 1 do
  redis.call('set', ARGV[3] .. i, string.rep('x', ARGV[4]))
end
"""
_CLEAR = """
for i = 1, ARGV[1] do redis.call('del', ARGV[2] .. i) end
"""


class Memory:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        policy = fault.arguments["policy"]
        before = self._info(node)
        limit = int(before["used_memory"]) + _ROOM
        self._grow_old(node, before)
        self._redis(node, "config", "set", "maxmemory-policy", policy)
        self._redis(node, "config", "set", "maxmemory", str(limit))
        reply = ""
        for start in range(1, _KEYS + 1, _BATCH):
            reply = self._redis(
                node, "eval", _FILL, "0", str(start), str(_BATCH), _PREFIX, str(_VALUE)
            )
            if "OOM" in reply:
                break
        evicted = int(self._info(node)["evicted_keys"]) - int(before["evicted_keys"])
        refused = "OOM" in reply
        data = {"policy": policy, "limit": limit, "evicted": evicted, "refused": refused}
        took = refused if policy == "noeviction" else evicted > 0
        how = f"{node} is limited to {limit} bytes: it evicted {evicted} keys"
        return Receipt(took, f"{how} and {'refuses' if refused else 'takes'} writes", data)

    def _grow_old(self, node: str, info: dict[str, str]) -> None:
        """Wait until the server's LRU clock, which counts whole seconds (Redis' evict.c), has
        advanced: existing keys are then older than the incoming ones, and are evicted first."""
        end = time.monotonic() + _OLDER_S
        while info.get("lru_clock") == self._info(node).get("lru_clock", ""):
            if time.monotonic() > end:
                return
            time.sleep(0.05)

    def heal(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        _unlimit(self._site.remote(node))
        limit = self._redis(node, "config", "get", "maxmemory").split()[-1:]
        return Receipt(limit == ["0"], f"{node} has no limit any more: maxmemory {limit}")

    def _redis(self, node: str, *words: str) -> str:
        return self._site.remote(node).run(["redis-cli", *words], check=False).out

    def _info(self, node: str) -> dict[str, str]:
        rows = self._redis(node, "info").splitlines()
        return dict(row.split(":", 1) for row in rows if ":" in row)


def _unlimit(remote: Remote) -> None:
    """Remove a server's limit, and the nemesis' own data."""
    for words in (
        ["config", "set", "maxmemory", "0"],
        ["config", "set", "maxmemory-policy", "noeviction"],
        ["eval", _CLEAR, "0", str(_KEYS + _BATCH), _PREFIX],
    ):
        remote.run(["redis-cli", *words], check=False)


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    nodes = pick(random, at, asked.target or "one")
    return [Drawn(nodes, {"policy": asked.variant or deal(random, "policy", POLICIES)})]


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    if not at.kind.evicts:
        raise ValueError(f"it needs Redis servers, and these are {at.kind.name}")
    if arguments.get("policy") not in POLICIES:
        raise ValueError(f"policy {arguments.get('policy')!r}: choose one of {', '.join(POLICIES)}")
    if len(targets) != 1:
        raise ValueError("it limits one server at a time")


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    return f"{targets[0]} runs out of memory under {arguments.get('policy')}"


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    if server is None:
        return []
    # No answer if the server is not Redis, is down, or is stopped.
    asked = ["timeout", "2", "redis-cli", "config", "get", "maxmemory"]
    limit = remote.run(asked, check=False).out.split()[1:]
    if limit in ([], ["0"]):
        return []
    unlimit = partial(_unlimit, remote)
    return [Leftover("its server's memory is limited", "removed its server's limit", unlimit)]


FAMILY = Family(
    name="memory",
    what="a Redis server reaches its memory limit, and evicts keys or refuses writes",
    receipt="keys that Redis reports as evicted, or a write that it refused",
    make=lambda site, chains: Memory(site),
    draw=draw,
    describe=describe,
    targets=("one",),
    variants=POLICIES,
    validate=validate,
    leftovers=leftovers,
    ours_alone="it replaces the server's own limit",
    forgets=True,
    colour=Colour("#a88a1d", "#d3b650"),
)
