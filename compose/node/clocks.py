#!/usr/bin/env python3
"""The clock as this node's server itself shows it, against the node's own.

    clocks KIND CLOCK              one look: {"low_s", "high_s"}
    clocks KIND CLOCK --mark       what a later look starts from, where a clock shows only change
    clocks KIND CLOCK --since M    one look, M being what --mark has said

A look gives bounds between which the offset of the server's clock lies: the node's clock is
read before and after the server was asked, and what the server shows may be cut off to ms or s.

    redis      wall       TIME
    etcd       wall       the Date of its HTTP replies, to the second
               monotonic  what is left of a lease, to the second
    zookeeper  wall       when a connection was opened (`cons`: est), to the ms
               monotonic  when it was last answered (`cons`: lresp), to the ms
    postgres   wall       clock_timestamp(), to the us
    node       wall       the node's own, less its monotonic one: to hold a client's against
               monotonic  the node's own, in ns: to hold other kernels' against

Only etcd's leader keeps leases: it alone shows its monotonic clock, and only as change since a
lease was granted, which is then taken from the leader's clock and not from the asked server's.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

_TIMEOUT_S = 2.0
# A lease that no jump outlives: etcd's longest is 9,000,000,000 s.
_LEASE_S = 1_000_000_000


class Hidden(Exception):
    """The server does not show this clock; the text says why."""


class Watch:
    """Reads the node's clock before and after: what a look is measured against."""

    def __init__(self, clock: int) -> None:
        self._clock = clock
        self.before_ns = time.clock_gettime_ns(clock)

    def bounds(self, shown_ns: int, grain_ns: int = 0) -> dict[str, float]:
        """The offset of a clock that showed this since the watch began, cut off to a grain."""
        after_ns = time.clock_gettime_ns(self._clock)
        return {
            "low_s": (shown_ns - after_ns) / 1e9,
            "high_s": (shown_ns + grain_ns - self.before_ns) / 1e9,
        }


def _redis_wall() -> dict[str, float]:
    with socket.create_connection(("127.0.0.1", 6379), _TIMEOUT_S) as link:
        watch = Watch(time.CLOCK_REALTIME)
        link.sendall(b"TIME\r\n")
        answer = b""
        while answer.count(b"\r\n") < 5:
            answer += _some(link)
    _, _, second, _, micro, *_ = answer.split(b"\r\n")
    return watch.bounds(int(second) * 10**9 + int(micro) * 1000, grain_ns=1000)


def _postgres_wall() -> dict[str, float]:
    command = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"]
    command += ["psql", "-h", "/tmp", "-qAtc", "select extract(epoch from clock_timestamp())"]
    watch = Watch(time.CLOCK_REALTIME)
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=True)
    except subprocess.SubprocessError as error:
        raise OSError(f"psql: {error}") from error
    second, _, micro = done.stdout.decode().strip().partition(".")
    return watch.bounds(int(second) * 10**9 + int(micro) * 1000, grain_ns=1000)


def _some(link: socket.socket) -> bytes:
    chunk = link.recv(65536)
    if not chunk:
        raise OSError("the server closed the connection")
    return chunk


def _etcd(path: str, body: dict[str, object]) -> tuple[dict[str, Any], str]:
    """A call of etcd's JSON gateway, which leaves zeros out; the reply, and its Date."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", 2379, _TIMEOUT_S)) as link:
        link.request("POST", f"/v3/{path}", json.dumps(body))
        reply = link.getresponse()
        content = json.loads(reply.read())
        if reply.status != 200:
            raise OSError(f"etcd answered {reply.status} to {path}: {content.get('error')}")
        return content, reply.headers["Date"]


def _etcd_wall() -> dict[str, float]:
    watch = Watch(time.CLOCK_REALTIME)
    _, date = _etcd("maintenance/status", {})
    shown_s = round(parsedate_to_datetime(date).timestamp())
    return watch.bounds(shown_s * 10**9, grain_ns=10**9)


def _led() -> None:
    status, _ = _etcd("maintenance/status", {})
    if status.get("leader") != status["header"]["member_id"]:
        raise Hidden("only etcd's leader shows its monotonic clock, by its leases")


def _etcd_mark() -> dict[str, Any]:
    """A new lease, and between which of the node's times it was granted."""
    _led()
    watch = Watch(time.CLOCK_MONOTONIC)
    lease, _ = _etcd("lease/grant", {"TTL": _LEASE_S})
    bounds = watch.bounds(0)
    return {"lease": lease["ID"], "earliest_s": -bounds["high_s"], "latest_s": -bounds["low_s"]}


def _etcd_monotonic(mark: dict[str, Any]) -> dict[str, float]:
    """The change since the mark: TTL - left - (now - granted)."""
    _led()
    watch = Watch(time.CLOCK_MONOTONIC)
    reply, _ = _etcd("lease/timetolive", {"ID": mark["lease"]})
    if "grantedTTL" not in reply:
        raise Hidden("the lease is gone by which etcd showed its monotonic clock")
    # Cut off towards zero: of 5.9 s left, 5 are shown, and of -5.9 s, -5.
    left_s = int(reply.get("TTL", 0))
    most_s, least_s = left_s + (left_s >= 0), left_s - (left_s <= 0)
    now = watch.bounds(0)
    return {
        "low_s": _LEASE_S - most_s + now["low_s"] + mark["earliest_s"],
        "high_s": _LEASE_S - least_s + now["high_s"] + mark["latest_s"],
    }


# A new client of ZooKeeper's protocol, version 0: session timeout 10 s, no session to go on with.
_HELLO = struct.pack(">iqiqi16s?", 0, 0, 10_000, 0, 16, bytes(16), False)
_GOODBYE = struct.pack(">iii", 8, -1, -11)


def _zookeeper(field: str, clock: int) -> dict[str, float]:
    """Open a session and see what `cons` says of its connection, in ms."""
    watch = Watch(clock)
    with socket.create_connection(("127.0.0.1", 2181), _TIMEOUT_S) as session:
        session.sendall(struct.pack(">i", len(_HELLO)) + _HELLO)
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
        raise Hidden(f"ZooKeeper's `cons` says nothing of {field}: {listed.strip()[:200]}")
    return {
        "low_s": int(shown[1]) / 1e3 - watched.before_ns / 1e9,
        "high_s": (int(shown[1]) + 1) / 1e3 - watch.before_ns / 1e9,
    }


def _four_letters(word: bytes) -> str:
    with socket.create_connection(("127.0.0.1", 2181), _TIMEOUT_S) as link:
        link.sendall(word)
        answer = b""
        while chunk := link.recv(65536):
            answer += chunk
    return answer.decode(errors="replace")


def _own() -> dict[str, float]:
    """The node's wall clock less its monotonic one, in ns: what a client's is held against."""
    before = time.monotonic_ns()
    wall = time.time_ns()
    return {"low_ns": wall - time.monotonic_ns(), "high_ns": wall - before}


Look = dict[str, float]
LOOKS: dict[tuple[str, str], Callable[[], Look]] = {
    ("redis", "wall"): _redis_wall,
    ("postgres", "wall"): _postgres_wall,
    ("etcd", "wall"): _etcd_wall,
    ("zookeeper", "wall"): lambda: _zookeeper("est", time.CLOCK_REALTIME),
    ("zookeeper", "monotonic"): lambda: _zookeeper("lresp", time.CLOCK_MONOTONIC),
    ("node", "wall"): _own,
    ("node", "monotonic"): lambda: {"ns": time.monotonic_ns()},
}
MARKS = {("etcd", "monotonic"): (_etcd_mark, _etcd_monotonic)}


def command(arguments: list[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser("clocks")
    parser.add_argument("kind")
    parser.add_argument("clock")
    parser.add_argument("--mark", action="store_true")
    parser.add_argument("--since", type=json.loads)
    given = parser.parse_args(arguments)
    key = (given.kind, given.clock)
    try:
        if key in MARKS:
            mark, look = MARKS[key]
            return mark() if given.mark else look(given.since)
        if key not in LOOKS:
            raise Hidden(f"{given.kind} does not show a {given.clock} clock")
        return {} if given.mark else LOOKS[key]()
    except Hidden as why:
        return {"hidden": str(why)}


def main() -> None:
    try:
        print(json.dumps(command(sys.argv[1:])))
    except OSError as error:
        sys.exit(f"clocks: {error}")


if __name__ == "__main__":
    main()
