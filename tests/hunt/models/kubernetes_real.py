"""A real API server on loopback, with an etcd of its own, and its comparison with the model.

    PATH=...:$PATH python -m tests.hunt.models.kubernetes_real FILE.json COUNT SEED

records a real server's answers to random requests that the model answers too.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from fencepost.harness.servers.kube_apiserver import TOKEN, flags
from fencepost.hunt.models.kubernetes.state import State
from fencepost.hunt.models.kubernetes.watches import Watch as Began
from fencepost.hunt.sim.unknown import Unknown
from tests.hunt.models.kubernetes_requests import WATCH, Answer, Asked, Requests, Send, Side, Watch

START_S = 240.0
_EVENT_S = 30.0
"""How long an event may take."""
_QUIET_S = 0.02
"""How long a watch is listened to for events that it should not have."""
NEEDS = ("kube-apiserver", "etcd")


def lacking() -> list[str]:
    """Return the programs that are not on the path."""
    return [name for name in NEEDS if shutil.which(name) is None]


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(socket.socket()) for _ in range(count)]
        for end in ends:
            end.bind(("127.0.0.1", 0))
        return [end.getsockname()[1] for end in ends]


@contextmanager
def api_server() -> Iterator[int]:
    """Start a server, wait until it serves, and yield its port."""
    store, peer, port = free_ports(3)
    with tempfile.TemporaryDirectory(prefix="kube-") as folder, contextlib.ExitStack() as stack:
        log = stack.enter_context(Path(folder, "log").open("wb+"))
        client, peers = f"http://127.0.0.1:{store}", f"http://127.0.0.1:{peer}"
        etcd = ["etcd", "--data-dir", f"{folder}/etcd",
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                "--initial-cluster", f"default={peers}"]  # fmt: skip
        serve = ["kube-apiserver", *flags(folder, [client], "127.0.0.1", port)]
        for command in (etcd, serve):
            started = subprocess.Popen(command, stdout=log, stderr=log)
            stack.callback(started.wait)
            stack.callback(started.kill)
        end = time.monotonic() + START_S
        while not _serves(port):
            if time.monotonic() > end or started.poll() is not None:
                log.seek(0)
                raise AssertionError(f"no API server: {log.read().decode()[-3000:]}")
            time.sleep(0.2)
        yield port


def _serves(port: int) -> bool:
    with contextlib.suppress(OSError), contextlib.closing(connection(port)) as link:
        send = sender(link)
        spaces = ("default", "kube-public", "kube-node-lease")
        paths = ["/readyz", *(f"/api/v1/namespaces/{space}" for space in spaces)]
        return all(send("GET", path, "", "", b"")[0] == 200 for path in paths)
    return False


def connection(port: int) -> http.client.HTTPSConnection:
    unverified = ssl._create_unverified_context()
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=unverified)


def sender(link: http.client.HTTPConnection) -> Send:
    """Send requests on a connection."""

    def send(method: str, path: str, query: str, media: str, body: bytes) -> tuple[int, bytes]:
        fields = {"Authorization": f"Bearer {TOKEN}", "User-Agent": "one"}
        if media:
            fields["Content-Type"] = media
        link.request(method, f"{path}?{query}" if query else path, body or None, fields)
        reply = link.getresponse()
        return reply.status, reply.read()

    return send


class Stream:
    """A watch at a real server."""

    def __init__(self, port: int, path: str, query: str) -> None:
        self._link = connection(port)
        self._link.request("GET", f"{path}?{query}", None, {"Authorization": f"Bearer {TOKEN}"})
        # An answer without a length takes the socket along, whose timeout changes below.
        self._socket = self._link.sock
        self._reply = self._link.getresponse()
        assert self._reply.status == 200, self._reply.read()

    def read(self, count: int | None) -> list[bytes]:
        """Return this many events, and those that come directly after; None: all until its end."""
        self._socket.settimeout(_EVENT_S)
        found = []
        while (count is None or len(found) < count) and (line := self._reply.readline()):
            found.append(line)
        if count is not None:
            self._socket.settimeout(_QUIET_S)
            with contextlib.suppress(TimeoutError):
                found += self._reply.readlines()
        return found

    def close(self) -> None:
        self._reply.close()
        self._link.close()


def watcher(port: int) -> Watch:
    """Watch at a real server."""

    def watch(path: str, query: str, count: int | None) -> list[bytes]:
        with contextlib.closing(Stream(port, path, query)) as stream:
            return stream.read(count)

    return watch


class Model:
    """A fresh model."""

    def __init__(self) -> None:
        self._state = State()
        self._caches = self._state.started()

    def send(
        self, method: str, path: str, query: str, media: str, body: bytes
    ) -> tuple[int, bytes]:
        return self._state.answer(method, path, query, media, body, time.time_ns())

    def begin(self, path: str, query: str) -> Began:
        return self._state.watch(path, query, self._caches, time.time_ns())

    def watch(self, path: str, query: str, count: int | None) -> list[bytes]:
        now_ns = time.time_ns()
        with contextlib.closing(self.begin(path, query)) as watch:
            found = watch.take(now_ns)
            while count is None and now_ns < watch.ends_ns:
                now_ns = watch.next_ns
                found += watch.take(now_ns)
            return found.splitlines(keepends=True)


def asked_of(side: Side, asked: Asked, expected: Answer) -> Answer:
    """Return the answer of a real server, whose watches may lag behind for a moment."""
    if asked["method"] != WATCH:
        try:
            return side.ask(asked)
        except http.client.RemoteDisconnected:
            return 0, "the server closed the connection"
    end = time.monotonic() + _EVENT_S
    while (found := side.ask(asked, len(expected[1]))) != expected and time.monotonic() < end:
        time.sleep(0.05)
    return found


def compare(
    real: Side, count: int, seed: int, stop: int = 1, ours: Side | None = None
) -> tuple[Counter[str], list[Asked]]:
    """Compare answers to random requests, until `count` are compared or `stop` differ. `ours` is
    the model, a fresh one unless given.

    Return the counts, and each request with the real server's answer. Requests that the model
    refuses are counted and not sent to the server.
    """
    requests, counts, recorded = Requests(Random(seed)), Counter[str](), []
    ours = ours or fresh()
    while counts["compared"] < count and counts["different"] < stop:
        asked = requests.draw()
        try:
            expected = ours.ask(asked)
        except Unknown as error:
            counts["refused"] += 1
            counts[f"refused: {str(error)[:60]}"] += 1
            continue
        found = asked_of(real, asked, expected)
        counts["compared"] += 1
        counts[f"{asked['method']} {found[0]}"] += 1
        recorded.append({**asked, "answer": list(found)})
        if found != expected:
            counts["different"] += 1
            print(f"#{counts['compared']} {json.dumps(asked)}")
            print(f"  real:  {json.dumps(found)}\n  model: {json.dumps(expected)}")
    return counts, recorded


def fresh() -> Side:
    """Return a fresh model as its clients see it."""
    model = Model()
    return Side(model.send, model.watch)


def main() -> None:
    file, count, seed = sys.argv[1:]
    with api_server() as port, contextlib.closing(connection(port)) as link:
        side = Side(sender(link), watcher(port))
        counts, recorded = compare(side, int(count), int(seed), stop=10)
    for name, number in sorted(counts.items()):
        print(f"{number:7} {name}")
    if counts["different"]:
        sys.exit("the model differs; nothing is recorded")
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in recorded)
    Path(file).write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
