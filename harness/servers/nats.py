"""Defines NATS: a cluster of servers with JetStream, which keeps the buckets of keys, or one.

Servers and streams each elect a leader. The one that counts here is that of the lock's bucket.
Version 2.10 compares and sets a key in one step; Debian bookworm's 2.9 does not if its bucket has
three replicas (nats-server issue 4320).
"""

from __future__ import annotations

import calendar
import contextlib
import http.client
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fencepost.node.kind import Clock, Image, Kind, Mark, Start
from fencepost.node.places import HOME
from fencepost.node.watch import Bounds, Watch

_PROGRAMS = {"2.10": f"{HOME}/nats-server-2.10", "2.9": "/usr/sbin/nats-server"}
_PORT, _PEER_PORT, _MONITOR_PORT = 4222, 6222, 8222
_NODES = 3
_TIMEOUT_S = 2.0
_BUCKET = "KV_fencepost"
"""The stream of the bucket in which workloads/locks/nats.py has its keys."""
# A server listens for clients on one address, its monitor on loopback. `max_file` is below the size
# of a small disk.
_CONFIG = """\
server_name: {node}
listen: "{address}:{port}"
http: "127.0.0.1:{monitor}"
max_payload: 64KB
jetstream {{ store_dir: "{data}", max_memory_store: 64MB, max_file_store: 200MB }}
"""
_CLUSTER = """\
cluster {{
  name: fencepost
  listen: "{address}:{peer}"
  no_advertise: true
  routes: [{routes}]
}}
"""


def _command(start: Start) -> Sequence[str]:
    servers = int(start.settings.get("SERVERS", 1))
    routes = ", ".join(f'"nats://nats-{n}:{_PEER_PORT}"' for n in range(1, servers + 1))
    text = _CONFIG + _CLUSTER if servers > 1 else _CONFIG
    config = Path(start.data) / "nats.conf"
    config.write_text(
        text.format(
            node=start.node, address=start.listen[0], data=start.data, routes=routes,
            port=_PORT, peer=_PEER_PORT, monitor=_MONITOR_PORT,
        )
    )  # fmt: skip
    return [_PROGRAMS[start.version], "--config", str(config)]


def _health() -> bool:
    """Return whether the servers have a leader, without which no bucket can be made or found.

    A bucket that does not recover from a power loss is a finding, and not a server that is not up.
    """
    servers = _ask("jsz").get("meta_cluster")
    return _ask("healthz?js-server-only=true").get("status") == "ok" and (
        servers is None or bool(servers.get("leader"))
    )


def _leads() -> bool:
    """Return whether it leads the lock's bucket; before that exists, the servers."""
    found = _ask("jsz?streams=true")
    streams = [one for each in found.get("account_details", ()) for one in each["stream_detail"]]
    of_bucket = (one.get("cluster") for one in streams if one["name"] == _BUCKET)
    led = next(of_bucket, found.get("meta_cluster"))
    return led is None or bool(led.get("leader") == _ask("varz")["server_name"])


def _version() -> str:
    return f"NATS {_ask('varz')['version']}"


def _wall(mark: Mark) -> Bounds:
    """Bound the wall clock by `now` of the monitor, in UTC, with up to nine decimals."""
    watch = Watch(time.CLOCK_REALTIME)
    shown = re.fullmatch(r"(.{19})(?:\.(\d+))?Z", _ask("varz")["now"])
    if shown is None:
        raise OSError("nats-server's monitor does not show the time in UTC")
    second = time.strptime(f"{shown[1]} UTC", "%Y-%m-%dT%H:%M:%S %Z")
    decimals = int((shown[2] or "").ljust(9, "0"))
    return watch.bounds(calendar.timegm(second) * 10**9 + decimals)


def _ask(path: str) -> dict[str, Any]:
    where = ("127.0.0.1", _MONITOR_PORT, _TIMEOUT_S)
    with contextlib.closing(http.client.HTTPConnection(*where)) as link:
        try:
            link.request("GET", f"/{path}")
            reply = link.getresponse()
            found: dict[str, Any] = json.loads(reply.read())
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"nats-server did not answer {path}: {error!r}") from error
    if reply.status != 200:
        raise OSError(f"nats-server answered {reply.status} to {path}: {found.get('error')}")
    return found


_STAGE = """\
FROM debian:bookworm-slim AS nats
RUN apt-get update \\
 && site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -1) \\
 && echo "deb $site trixie main" > /etc/apt/sources.list.d/trixie.list \\
 && apt-get update && cd /tmp && apt-get download nats-server/trixie \\
 && dpkg -x nats-server_*.deb /opt/nats
"""

KIND = Kind(
    "nats",
    __name__,
    port=_PORT,
    peers=(_PEER_PORT,),
    nodes=_NODES,
    versions=("2.10", "2.9"),
    image=Image(
        packages=("nats-server",),
        stage=_STAGE,
        after=f"COPY --from=nats /opt/nats/usr/sbin/nats-server {_PROGRAMS['2.10']}\n",
    ),
    needs=(_PROGRAMS["2.10"],),
    command=_command,
    health=_health,
    leads=_leads,
    version=_version,
    clocks={"wall": Clock(_wall)},
    user="nats",
    # server/log.go: Fatalf; checked against the messages in 2.9.10. Its panics are Go's.
    crash_lines=(
        r"^\[\d+\] \S+ \S+ \[FTL\] (?!Error listening on port)",
        r"^nats-server: ",
    ),
    # Its port is taken.
    loss_lines=(r"\[FTL\] Error listening on port",),
    elects=True,
    lease_clock="wall",
    leader_leases=True,
    around_s=6.0,
)
