"""Redis with Sentinel, in the place of a Redis server: `--server redis=sentinel`.

Each node runs a server and a sentinel. The first server is the primary at first; the others are its
replicas. The sentinels watch the primary, and promote a replica when most of them miss it.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from fencepost.harness.servers import redis
from fencepost.node.kind import Image, Start
from fencepost.node.places import DATA

GROUP = "fencepost"
"""What the sentinels call the primary and its replicas."""
PORT = 26379

# Sentinel's own defaults are 30 s and 3 min: far longer than runs last.
_DOWN_AFTER_MS, _FAILOVER_MS = 1000, 3000
_SERVERS = Path(DATA, "redis", "servers")
# A sentinel asks for the replicas when it starts, and then every 10 s: it starts when all are
# there. A node that comes back when there was a failover does not find them where they were.
_WAIT = """\
for _ in $(seq 50); do
  redis-cli -h {first} info replication 2> /dev/null | grep -q connected_slaves:{others} && break
  sleep 0.1
done
exec redis-sentinel {conf}
"""


def _command(start: Start) -> list[str]:
    """The server, with the sentinel as its child, which ends with it."""
    servers, first = int(start.settings["SERVERS"]), start.settings["FIRST"]
    _SERVERS.write_text(f"{servers}\n")
    conf = Path(start.data, "sentinel.conf")
    if not conf.exists():  # the sentinel keeps there what it knows
        conf.write_text(_conf(start, first, servers // 2 + 1))
    waits = _WAIT.format(first=first, others=servers - 1, conf=conf)
    sentinel = shlex.join(["setpriv", "--pdeathsig", "KILL", "sh", "-c", waits])
    settings = {**start.settings, "CLOCK": "real"}
    server = shlex.join(redis.command(replace(start, settings=settings)))
    return ["sh", "-c", f"{sentinel} & exec {server}"]


def _conf(start: Start, first: str, quorum: int) -> str:
    return (
        f"port {PORT}\n"
        f"bind {' '.join(start.listen)}\n"
        "protected-mode no\n"
        f"dir {start.data}\n"
        f"sentinel monitor {GROUP} {first} {redis.KIND.port} {quorum}\n"
        f"sentinel down-after-milliseconds {GROUP} {_DOWN_AFTER_MS}\n"
        f"sentinel failover-timeout {GROUP} {_FAILOVER_MS}\n"
        f"sentinel parallel-syncs {GROUP} {quorum}\n"
    )


def _health() -> bool:
    """Whether the server serves, and its sentinel knows all replicas and all other sentinels."""
    if not redis.health():
        return False
    words = redis.ask(f"SENTINEL MASTER {GROUP}", PORT)
    known = dict(zip(words[::2], words[1::2], strict=False))
    others = str(int(_SERVERS.read_text()) - 1)
    return known.get("num-slaves") == known.get("num-other-sentinels") == others


def _version() -> str:
    return f"{redis.version()} with Sentinel"


KIND = replace(
    redis.KIND,
    name="sentinel",
    module=__name__,
    serves="redis",
    image=Image(packages=("redis-sentinel",)),
    needs=("redis-server", "redis-cli", "redis-sentinel"),
    peers=(PORT,),
    command=_command,
    health=_health,
    version=_version,
    # Its sentinel is stopped and killed with it, as with a machine.
    forks=True,
    faketime=False,
    independent=False,
    model="",
    elects=True,
    loses=True,
)
