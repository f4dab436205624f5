"""Defines Redis: one server, or a primary with replicas."""

from __future__ import annotations

import glob
import os
import socket
import time
from collections.abc import Sequence
from typing import IO

from fencepost.node.kind import Clock, Image, Kind, Mark, Start
from fencepost.node.places import RUN
from fencepost.node.watch import Bounds, Watch

CLOCK_FILE = f"{RUN}/clock"
_PORT = 6379
_TIMEOUT_S = 2.0


def command(start: Start, program: str = "redis-server") -> list[str]:
    """Return the command line of the server, or of a `program` with the same options (Valkey)."""
    words = [program, "--port", str(_PORT), "--bind", *start.listen, "--protected-mode", "no"]
    words += ["--dir", start.data, "--save", ""]
    persistence = start.settings.get("PERSISTENCE", "none")
    if persistence == "none":
        words += ["--appendonly", "no"]
    else:
        words += ["--appendonly", "yes", "--appendfsync", persistence]
        # The default, 64 MB, is too much for a small disk.
        words += ["--auto-aof-rewrite-min-size", "16mb"]
    # By default a primary waits 5 s for more replicas before it synchronizes the first one.
    words += ["--repl-diskless-sync-delay", "0"]
    if primary := start.settings.get("PRIMARY"):
        words += ["--replicaof", primary, str(_PORT)]
    if start.settings.get("CLOCK") == "fake":
        words = [*_faked(), *words]
    return words


def _faked() -> list[str]:
    """Return the prefix of the command that makes a server read its clock's offset from a file."""
    # Preload libc's malloc: with jemalloc, libfaketime 0.9.10 recurses while it starts.
    (library,) = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not os.path.exists(CLOCK_FILE):
        with open(CLOCK_FILE, "w") as file:
            file.write("+0\n")
    return [
        "env", f"LD_PRELOAD={library}:libc.so.6", f"FAKETIME_TIMESTAMP_FILE={CLOCK_FILE}",
        "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1",
    ]  # fmt: skip


def health() -> bool:
    """Return whether it serves; a replica does once it is in sync with its primary."""
    (pong,) = ask("PING")
    return pong == "PONG" and "master_link_status:down" not in ask("INFO replication")[0]


def leads() -> bool:
    return ask("ROLE")[0] == "master"


def identity() -> str:
    return f"run {_info()['run_id']}"


def _info() -> dict[str, str]:
    """Return INFO's fields about the server; a fork of Redis has other names of some."""
    rows = ask("INFO server")[0].splitlines()
    return dict(row.split(":", 1) for row in rows if ":" in row)


def wall(mark: Mark) -> Bounds:
    watch = Watch(time.CLOCK_REALTIME)
    second, micro = ask("TIME")
    return watch.bounds(int(second) * 10**9 + int(micro) * 1000, grain_ns=1000)


def version() -> str:
    info = _info()
    name = info.get("server_name", "redis")
    return f"{name.capitalize()} {info[f'{name}_version']}"


def ask(words: str, port: int = _PORT) -> Sequence[str]:
    """Send an inline command; return its reply as a list of strings."""
    with socket.create_connection(("127.0.0.1", port), _TIMEOUT_S) as link:
        link.sendall(words.encode() + b"\r\n")
        with link.makefile("rb") as stream:
            return _answer(stream)


def _answer(stream: IO[bytes]) -> list[str]:
    line = stream.readline().decode().rstrip("\r\n")
    if not line:
        raise OSError("the server closed the connection")
    kind, rest = line[0], line[1:]
    if kind == "-":
        raise OSError(f"the server refused the command: {rest}")
    if kind == "$":
        return [stream.read(int(rest) + 2)[:-2].decode(errors="replace")]
    if kind == "*":
        return [text for _ in range(int(rest)) for text in _answer(stream)]
    return [rest]


# Checked against the messages in the binary of 7.0.15. Not listed: "Short read or OOM loading DB.
# Unrecoverable error, aborting now.", which it logs of a copy that its master did not complete.
_CRASH_LINES = (
    # debug.c: sigsegvHandler, _serverPanic, _serverAssert; server.c: redisOutOfMemoryHandler.
    r"REDIS BUG REPORT START|Guru Meditation|ASSERTION FAILED|crashed by signal",
    r"Out Of Memory allocating|Redis aborting for OUT OF MEMORY|zmalloc: Out of memory",
    # server.c: loadDataFromDisk; rdb.c: rdbReportError, rdbLoadRio.
    r"Fatal error loading the DB|Terminating server after rdb file reading failure",
    r"Wrong RDB checksum expected",
    r"FATAL: Data file was created with a Redis server configured to handle more",
    # aof.c: loadSingleAppendOnlyFile, aofLoadManifestFromFile, aofOpenIfNeededOnServerStart.
    r"(?:Bad file format|Unexpected end of file|Unrecoverable error) reading the append only",
    r"FATAL AOF MANIFEST FILE ERROR|Fatal error: can't open the (?:append log|AOF manifest)",
    r"Can't open the append-only file|Can't open or create append-only dir",
    r"Error reading the RDB (?:preamble of the AOF|base) file .*AOF loading aborted",
    # aof.c: flushAppendOnlyFile; replication.c: restartAOFAfterSYNC.
    r"Can't (?:recover from AOF write error|persist AOF for fsync error)",
    r"FATAL: this replica instance finished the synchronization",
    # config.c: loadServerConfig; server.c, acl.c, module.c, cluster.c, sentinel.c at the start.
    r"FATAL CONFIG FILE ERROR|Fatal error, can't open config file",
    r"Critical error while loading ACLs|Aborting Redis startup because of ACL errors",
    r"Can't load module from .*server aborting|Configured to not listen anywhere, exiting",
    r"Fatal: [Cc]an't (?:initialize|update)",
    r"Unrecoverable error creating |Unrecoverable error: corrupted cluster config",
    r"Sentinel config file .*Exiting",
)

KIND = Kind(
    "redis",
    __name__,
    port=_PORT,
    nodes=5,
    versions=("7.0",),
    image=Image(packages=("libfaketime", "redis-server")),
    needs=("redis-server", "redis-cli"),
    command=command,
    health=health,
    leads=leads,
    identity=identity,
    version=version,
    clocks={"wall": Clock(wall)},
    disk_mb=64,
    user="redis",
    faketime=True,
    independent=True,
    lease_clock="wall",
    persistence={"none": "nothing", "everysec": "crash", "always": "power"},
    replaceable=True,
    evicts=True,
    crash_lines=_CRASH_LINES,
    # A restarted server finds its port taken.
    loss_lines=(r"Failed listening on port .*aborting",),
    around_s=3.5,
    model="redis",
)
