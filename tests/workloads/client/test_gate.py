"""A program behind a gate is stopped at its messages, as often as an order says so."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from queue import Queue

import pytest

from fencepost.workloads.client.gate import REPLY, WAITS, number
from fencepost.workloads.client.steps import before, connected

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PROGRAM = r"""
import json, os, socket, sys
links = {}
def say(**row):
    print(json.dumps(row), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    if order.get("control") == "setup":
        for name, at in order["addresses"].items():
            links[name] = socket.create_connection(tuple(at))
            links[name].settimeout(float(os.environ["TIME_OUT_S"]))
        say(control="ready", version=1, pid=os.getpid(), generates=False)
    elif order.get("control") == "background":
        links["a"].sendall(b"*1\r\n$4\r\nPING\r\n")
        links["a"].recv(100)
    elif "f" in order:
        say(type="invoke", f=order["f"])
        links["a"].sendall(b"*1\r\n$4\r\nINFO\r\n")
        links["a"].recv(100)
        for name in ("b", "a"):
            links[name].sendall(b"*2\r\n$3\r\nSET\r\n$1\r\nk\r\n")
        try:
            for name in ("a", "b"):
                links[name].recv(100)
        except TimeoutError:
            say(type="info", f=order["f"])
        else:
            say(type="ok", f=order["f"])
"""
SERVERS = ("a", "b", "storage")


class Servers:
    """Answer each command with +OK, and note it with the port that it comes from."""

    def __init__(self):
        self.heard: list[tuple[str, str, int]] = []
        self._listeners = {name: socket.create_server(("127.0.0.1", 0)) for name in SERVERS}
        self.addresses = {name: one.getsockname() for name, one in self._listeners.items()}
        for name, one in self._listeners.items():
            threading.Thread(target=self._serve, args=(name, one), daemon=True).start()

    def _serve(self, name, listener):
        sock, (_, port) = listener.accept()
        with suppress(OSError):  # reset by a test
            while data := sock.recv(1000):
                self.heard.append((name, data.split(b"\r\n")[2].decode(), port))
                sock.sendall(b"+OK\r\n")

    def close(self):
        for one in self._listeners.values():
            one.close()


class Behind:
    """A program behind a gate, and its lines."""

    def __init__(self, time_out_s=120):
        self.servers = Servers()
        command = [sys.executable, "-m", "fencepost.workloads.client.gate"]
        self.process = subprocess.Popen(
            [*command, sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"TIME_OUT_S": str(time_out_s)},
        )  # fmt: skip
        self.lines: Queue[dict] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.tell(
            control="setup", servers=["a", "b"], storage="storage", store="redis",
            addresses=self.servers.addresses,
        )  # fmt: skip
        self.pid = self.next()["pid"]

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def tell(self, **order):
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def next(self):
        return self.lines.get(timeout=120)

    def resume(self):
        os.kill(self.pid, signal.SIGCONT)

    def sets(self):
        return [name for name, word, _ in self.servers.heard if word == "SET"]

    def words(self):
        return [(name, word) for name, word, _ in self.servers.heard]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.servers.close()


@pytest.fixture
def behind(request):
    made = Behind(**getattr(request, "param", {}))
    yield made
    if made.process.poll() is None:
        os.kill(made.pid, signal.SIGKILL)
    made.close()


def await_(condition):
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_without_orders_everything_passes(behind):
    behind.tell(f="acquire")
    assert [behind.next()["type"] for _ in range(2)] == ["invoke", "ok"]
    assert sorted(behind.sets()) == ["a", "b"]


def test_a_program_is_stopped_before_a_request_and_those_to_earlier_servers_have_been_sent(behind):
    point = before(number(0, 1, 3))
    behind.tell(control="arm", point=point)
    behind.tell(f="acquire")
    assert behind.next()["type"] == "invoke"
    assert behind.next() == {"control": "point", "point": point}
    assert state(behind.pid) == "T"
    # It asked b first, but servers are asked in their order.
    await_(behind.sets)
    assert behind.sets() == ["a"]
    behind.resume()
    assert behind.next()["type"] == "ok" and behind.sets() == ["a", "b"]


def test_a_stop_before_a_request_names_the_port_that_the_server_sees(behind):
    behind.tell(control="arm", point=connected(number(0, 0, 3)))
    behind.tell(f="acquire")
    assert behind.next()["type"] == "invoke"
    port = behind.next()["port"]
    behind.resume()
    assert behind.next()["type"] == "ok"
    assert ("a", "SET", port) in behind.servers.heard


@pytest.mark.parametrize("place", [WAITS, REPLY])
def test_a_program_is_stopped_after_its_requests_and_before_it_reads_the_reply(behind, place):
    behind.tell(control="arm", point=before(number(0, 0, 3) + place))
    behind.tell(f="acquire")
    assert behind.next()["type"] == "invoke" and "point" in behind.next()
    await_(lambda: len(behind.sets()) == 2)
    assert sorted(behind.sets()) == ["a", "b"] and state(behind.pid) == "T"
    assert behind.lines.empty()
    behind.resume()
    assert behind.next()["type"] == "ok"


@pytest.mark.parametrize("place", [WAITS, REPLY])
@pytest.mark.parametrize("behind", [{"time_out_s": 0.1}], indirect=True)
def test_a_program_that_is_stopped_past_its_own_time_out_finds_the_reply_when_it_resumes(
    behind, place
):
    """As one does whose process is stopped without a gate: its kernel has the reply."""
    behind.tell(control="arm", point=before(number(0, 0, 3) + place))
    behind.tell(f="acquire")
    assert behind.next()["type"] == "invoke" and "point" in behind.next()
    time.sleep(0.5)
    behind.resume()
    assert behind.next()["type"] == "ok"


def test_a_reply_whose_own_point_is_armed_waits_for_it(behind):
    points = [before(number(0, 0, 3) + place) for place in (WAITS, REPLY)]
    for point in points:
        behind.tell(control="arm", point=point)
    behind.tell(f="acquire")
    assert behind.next()["type"] == "invoke"
    for point in points:
        assert behind.next() == {"control": "point", "point": point}
        assert behind.lines.empty() and state(behind.pid) == "T"
        behind.resume()
    assert behind.next()["type"] == "ok"


def test_each_op_counts_anew_and_a_request_outside_an_op_has_no_number(behind):
    behind.tell(f="acquire")
    assert [behind.next()["type"] for _ in range(2)] == ["invoke", "ok"]
    point = before(number(0, 0, 3))
    behind.tell(control="arm", point=point)
    behind.tell(control="background")
    await_(lambda: ("a", "PING") in behind.words())
    behind.tell(f="release")
    assert behind.next()["type"] == "invoke"
    assert behind.next()["point"] == point
    assert sorted(behind.sets()) == ["a", "b"]


def test_a_disarmed_point_stops_nothing(behind):
    point = before(number(0, 0, 3))
    behind.tell(control="arm", point=point)
    behind.tell(control="disarm", point=point)
    behind.tell(f="acquire")
    assert [behind.next()["type"] for _ in range(2)] == ["invoke", "ok"]


def test_a_program_that_is_killed_at_a_stop_sends_nothing_more_and_its_gate_ends(behind):
    behind.tell(control="arm", point=before(number(0, 0, 3)))
    behind.tell(f="acquire")
    assert behind.next()["type"] == "invoke" and "point" in behind.next()
    os.kill(behind.pid, signal.SIGKILL)
    assert behind.process.wait(120) == 128 + signal.SIGKILL
    assert behind.sets() == []


def test_a_program_ends_with_its_input(behind):
    behind.process.stdin.close()
    assert behind.process.wait(120) == 0
