"""Defines ZooKeeper: an ensemble of three."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from fencepost.node.kind import Clock, Image, Kind, Mark, Start
from fencepost.node.listen import own
from fencepost.node.places import DATA, RUN
from fencepost.node.watch import Bounds, Hidden, Watch

_PORT = 2181
_PEERS = (2888, 3888)
_NODES = 3
_TIMEOUT_S = 2.0
_DISK_S = 10.0
_SERVER = "/usr/share/zookeeper/bin/zkServer.sh"
# The package depends on a JRE with a desktop, which is half of its 557 MB. So its files are taken
# without its dependencies, and what its postinst does is done here.
_STAGE = """\
FROM debian:bookworm-slim AS zookeeper
RUN apt-get update && cd /tmp && apt-get download zookeeper \\
 && dpkg -x zookeeper_*.deb /opt/zookeeper
"""
_AFTER = """\
COPY --from=zookeeper /opt/zookeeper/etc/zookeeper /etc/zookeeper
COPY --from=zookeeper /opt/zookeeper/usr/share/zookeeper /usr/share/zookeeper
RUN ln -s conf_example /etc/zookeeper/conf \\
 && useradd --system --home-dir /var/lib/zookeeper --shell /bin/false zookeeper \\
 && install -d -o zookeeper -g zookeeper /var/lib/zookeeper /var/log/zookeeper
"""
# A tick is 500 ms, because a session lasts at least two ticks and a test may ask for 1 s. Without
# autopurge (interval in hours, snapshots to retain), all snapshots and logs would be kept.
_CONFIG = """\
tickTime=500
initLimit=20
syncLimit=10
dataDir={data}
clientPort=2181
4lw.commands.whitelist=srvr,ruok,mntr,cons
admin.enableServer=false
maxClientCnxns=0
autopurge.purgeInterval=1
autopurge.snapRetainCount=3
"""


def _command(start: Start) -> Sequence[str]:
    peers = ":".join(map(str, _PEERS))
    members = [f"server.{n}=zookeeper-{n}:{peers}\n" for n in range(1, _NODES + 1)]
    config = Path(RUN) / "zoo.cfg"
    # A client port has one address; among themselves the members use their host names' addresses.
    listens = f"clientPortAddress={start.listen[0]}\n"
    config.write_text(_CONFIG.format(data=start.data) + listens + "".join(members))
    (Path(start.data) / "myid").write_text(f"{start.node.rpartition('-')[2]}\n")
    return ["env", "JVMFLAGS=-Xmx256m", _SERVER, "start-foreground", str(config)]


def _health() -> bool:
    # Only a server that is part of a quorum, or needs no quorum, reports one of these modes.
    return _mode() in ("leader", "follower", "observer", "standalone")


def _leads() -> bool:
    return _mode() in ("leader", "standalone")


def _mode() -> str:
    found = re.search(r"^Mode: (\w+)", _four_letters(b"srvr"), re.MULTILINE)
    return found[1] if found else ""


def _identity() -> str:
    """Return an id that changes when the server's disk is replaced."""
    disk = f"{DATA}/zookeeper/version-2"
    try:
        done = subprocess.run(
            ["stat", "-c", "%W.%i", disk],
            capture_output=True, text=True, check=False, timeout=_DISK_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise OSError(f"the disk of {DATA} did not answer within {_DISK_S:.0f} s") from error
    return f"disk {done.stdout.strip()}"


def _version() -> str:
    found = re.search(r"^Zookeeper version: ([\w.]+)", _four_letters(b"srvr"), re.MULTILINE)
    return f"ZooKeeper {found[1] if found else 'of unknown version'}"


# A connect request of protocol version 0: session timeout 10 s, a new session.
HELLO = struct.pack(">iqiqi16s?", 0, 0, 10_000, 0, 16, bytes(16), False)
_GOODBYE = struct.pack(">iii", 8, -1, -11)


def _wall(mark: Mark) -> Bounds:
    return _shown("est", time.CLOCK_REALTIME)


def _monotonic(mark: Mark) -> Bounds:
    return _shown("lresp", time.CLOCK_MONOTONIC)


def _shown(field: str, clock: int) -> Bounds:
    """Open a session; return the field, in ms, that `cons` reports for its connection."""
    watch = Watch(clock)
    with socket.create_connection((own(), _PORT), _TIMEOUT_S) as session:
        session.sendall(struct.pack(">i", len(HELLO)) + HELLO)
        while len(answer := _some(session)) < 4:
            pass
        if struct.unpack_from(">i", answer, 8)[0] <= 0:
            raise OSError("ZooKeeper refused a session")
        watched = Watch(clock)
        port = session.getsockname()[1]
        listed = _four_letters(b"cons")
        session.sendall(_GOODBYE)
        with contextlib.suppress(OSError):
            session.recv(64)
    shown = re.search(rf":{port}\[.*?\b{field}=(\d+)", listed)
    if shown is None:
        raise Hidden(f"ZooKeeper's `cons` does not report {field}: {listed.strip()[:200]}")
    return {
        "low_s": int(shown[1]) / 1e3 - watched.before_ns / 1e9,
        "high_s": (int(shown[1]) + 1) / 1e3 - watch.before_ns / 1e9,
    }


def _some(link: socket.socket) -> bytes:
    chunk = link.recv(65536)
    if not chunk:
        raise OSError("the server closed the connection")
    return chunk


def _four_letters(word: bytes) -> str:
    with socket.create_connection((own(), _PORT), _TIMEOUT_S) as link:
        link.sendall(word)
        answer = b""
        while chunk := link.recv(65536):
            answer += chunk
    return answer.decode(errors="replace")


KIND = Kind(
    "zookeeper",
    __name__,
    port=_PORT,
    peers=_PEERS,
    nodes=_NODES,
    versions=("3.8",),
    image=Image(packages=("default-jre-headless", "libzookeeper-java"), stage=_STAGE, after=_AFTER),
    needs=(_SERVER,),
    command=_command,
    health=_health,
    leads=_leads,
    identity=_identity,
    version=_version,
    # est: when a connection was opened; lresp: when it last got a response.
    clocks={"wall": Clock(_wall), "monotonic": Clock(_monotonic)},
    user="zookeeper",
    files=(f"{RUN}/zoo.cfg",),
    elects=True,
    lease_clock="monotonic",
    replaceable=True,
    # Checked against the messages in 3.8.0. Not listed: "Exiting JVM with code 0", which it logs
    # when it is asked to end.
    crash_lines=(
        # QuorumPeerMain, ZooKeeperServerMain.
        r"exiting abnormally",
        # ServiceUtils; 0 is an order to end.
        r"Exiting JVM with code [1-9]|Fatal error, JVM should exit with code [1-9]",
        # ZooKeeperCriticalThread, ZooKeeperServer, ZooKeeperServerListenerImpl, QuorumPeer.
        r"Severe unrecoverable error|Thread .{1,200} exits, error code [1-9]",
        r"Unable to load database on disk|Unable to run quorum server",
    ),
    ends_with="close",
    around_s=7.0,
    model="zookeeper",
)
