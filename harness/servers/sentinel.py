"""Defines Redis with Sentinel, which replaces a Redis server: `--server redis=sentinel`.

Each node runs a server and a sentinel. Initially, the first server is the primary and the others
are its replicas. The sentinels watch the primary, and promote a replica when a majority of them
cannot reach it.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from fencepost.harness.servers import redis
from fencepost.node.kind import Image, Start
from fencepost.node.places import DATA

GROUP = "fencepost"
"""The sentinels' name for the primary and its replicas."""
PORT = 26379

# Sentinel's defaults are 30 s and 3 min, longer than most runs.
_DOWN_AFTER_MS, _FAILOVER_MS = 1000, 3000
_SERVERS = Path(DATA, "redis", "servers")
# A sentinel looks for replicas when it starts and then every 10 s, so it starts only when all are
# connected. The wait is bounded: after a failover, the first server is not the primary any more.
_WAIT = """\
for _ in $(seq 50); do
  redis-cli -h {first} info replication 2> /dev/null | grep -q connected_slaves:{others} && break
  sleep 0.1
done
exec redis-sentinel {conf}
"""


def _command(start: Start) -> list[str]:
    """Return the command of the server, with the sentinel as its child, which ends with it."""
    servers, first = int(start.settings["SERVERS"]), start.settings["FIRST"]
    _SERVERS.write_text(f"{servers}\n")
    conf = Path(start.data, "sentinel.conf")
    if not conf.exists():  # the sentinel stores its state in this file
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
    """Return whether the server serves and its sentinel knows all replicas and sentinels."""
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
    # Stop and kill the sentinel with the server, as if the machine failed.
    forks=True,
    faketime=False,
    independent=False,
    model="",
    elects=True,
    loses=True,
)
