"""Defines etcd: a cluster of three members.

Version 3.5 fixes the defect of the lock API (etcd issue 11456); Debian bookworm's 3.4 has it.

Only etcd's leader keeps leases. So only the leader shows its monotonic clock, as the change since a
lease was granted.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from fencepost.node.kind import Clock, Image, Kind, Mark, Start
from fencepost.node.places import HOME
from fencepost.node.watch import Bounds, Hidden, Watch

_PORT, _PEER_PORT = 2379, 2380
_NODES = 3
_TIMEOUT_S = 2.0
_PROGRAMS = {"3.5": f"{HOME}/etcd-3.5", "3.4": "/usr/bin/etcd"}
# A lease longer than any clock jump; etcd's maximum is 9,000,000,000 s.
_LEASE_S = 1_000_000_000


def _command(start: Start) -> Sequence[str]:
    program, node = _PROGRAMS[start.version], start.node
    members = ",".join(f"etcd-{n}=http://etcd-{n}:2380" for n in range(1, _NODES + 1))
    return [
        program if os.access(program, os.X_OK) else "etcd",
        "--name", node, "--data-dir", f"{start.data}/etcd", "--logger", "zap",
        "--listen-client-urls", _urls(start.listen, _PORT),
        "--advertise-client-urls", f"http://{node}:2379",
        "--listen-peer-urls", _urls(start.listen[:1], _PEER_PORT),
        "--initial-advertise-peer-urls", f"http://{node}:2380",
        "--initial-cluster-state", start.settings.get("JOIN", "new"),
        "--initial-cluster", members,
        # In a long run, revisions would fill the quota (2 GB), and the log a small disk.
        "--auto-compaction-mode", "periodic", "--auto-compaction-retention", "30m",
        "--max-wals", "2", "--max-snapshots", "2",
    ]  # fmt: skip


def _urls(addresses: Sequence[str], port: int) -> str:
    return ",".join(f"http://{address}:{port}" for address in addresses)


def _health() -> bool:
    """Return a read that needs a quorum, as `etcdctl endpoint health` does it."""
    _call("kv/range", {"key": base64.b64encode(b"health").decode()})
    return True


def _leads() -> bool:
    status, _ = _call("maintenance/status", {})
    return bool(status.get("leader") == status["header"]["member_id"])


def _identity() -> str:
    status, _ = _call("maintenance/status", {})
    return f"member {int(status['header']['member_id']):x}"


def _version() -> str:
    status, _ = _call("maintenance/status", {})
    return f"etcd {status['version']}"


def _call(path: str, body: dict[str, object]) -> tuple[dict[str, Any], str]:
    """Call etcd's JSON gateway, which omits zeros; return the reply and its Date."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", _PORT, _TIMEOUT_S)) as link:
        try:
            link.request("POST", f"/v3/{path}", json.dumps(body))
            reply = link.getresponse()
            content = json.loads(reply.read())
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"etcd did not answer {path}: {error!r}") from error
        if reply.status != 200:
            raise OSError(f"etcd answered {reply.status} to {path}: {content.get('error')}")
        return content, reply.headers["Date"]


def _wall(mark: Mark) -> Bounds:
    """Bound the wall clock by the Date of an HTTP reply, which has a resolution of 1 s."""
    watch = Watch(time.CLOCK_REALTIME)
    _, date = _call("maintenance/status", {})
    shown_s = round(parsedate_to_datetime(date).timestamp())
    return watch.bounds(shown_s * 10**9, grain_ns=10**9)


def _must_lead() -> None:
    if not _leads():
        raise Hidden("only etcd's leader shows its monotonic clock, through its leases")


def _mark() -> Mark:
    """Grant a lease; return it and the node's times before and after the grant."""
    _must_lead()
    watch = Watch(time.CLOCK_MONOTONIC)
    lease, _ = _call("lease/grant", {"TTL": _LEASE_S})
    bounds = watch.bounds(0)
    return {"lease": lease["ID"], "earliest_s": -bounds["high_s"], "latest_s": -bounds["low_s"]}


def _monotonic(mark: Mark) -> Bounds:
    """Bound the change since the mark: TTL - remaining - (now - granted)."""
    _must_lead()
    watch = Watch(time.CLOCK_MONOTONIC)
    reply, _ = _call("lease/timetolive", {"ID": mark["lease"]})
    if "grantedTTL" not in reply:
        raise Hidden("the lease through which etcd showed its monotonic clock no longer exists")
    # etcd truncates towards zero: it shows 5.9 s as 5, and -5.9 s as -5.
    left_s = int(reply.get("TTL", 0))
    most_s, least_s = left_s + (left_s >= 0), left_s - (left_s <= 0)
    now = watch.bounds(0)
    return {
        "low_s": _LEASE_S - most_s + now["low_s"] + mark["earliest_s"],
        "high_s": _LEASE_S - least_s + now["high_s"] + mark["latest_s"],
    }


# The binary is static, so trixie's runs on bookworm.
_STAGE = """\
FROM debian:bookworm-slim AS etcd
RUN apt-get update \\
 && site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -1) \\
 && echo "deb $site trixie main" > /etc/apt/sources.list.d/trixie.list \\
 && apt-get update && cd /tmp && apt-get download etcd-server/trixie \\
 && dpkg -x etcd-server_*.deb /opt/etcd-3.5
"""

KIND = Kind(
    "etcd",
    __name__,
    port=_PORT,
    peers=(_PEER_PORT,),
    nodes=_NODES,
    versions=("3.5", "3.4"),
    image=Image(
        packages=("etcd-client", "etcd-server"),
        stage=_STAGE,
        after=f"COPY --from=etcd /opt/etcd-3.5/usr/bin/etcd {_PROGRAMS['3.5']}\n",
    ),
    needs=(_PROGRAMS["3.5"], "etcdctl"),
    command=_command,
    health=_health,
    leads=_leads,
    identity=_identity,
    version=_version,
    clocks={"wall": Clock(_wall), "monotonic": Clock(_monotonic, _mark)},
    user="etcd",
    members=True,
    elects=True,
    lease_clock="monotonic",
    leader_leases=True,
    grain_s=1.0,
    replaceable=True,
    # Checked against the messages in 3.4.23.
    crash_lines=(
        # zap (zapcore/level.go), as JSON and as columns; capnslog, which etcd 3.4 has without zap.
        r"\"level\": ?\"(?:panic|dpanic|fatal)\"",
        r"\t(?:panic|dpanic|fatal|PANIC|DPANIC|FATAL)\t",
        r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ C \| ",
    ),
    ends_with="close",
    around_s=4.0,
    model="etcd",
)
