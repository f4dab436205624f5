"""A client is ended when its user lock computes for ever, and only then."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import importlib, os, sys
importlib.import_module(sys.argv[4])
from fencepost.workloads.client import endless
from fencepost.workloads.client.wire import Own

endless._LOOK_S = float(sys.argv[3])

def told(why):
    print(why, flush=True)
    os._exit(1)

events = 0
endless.Endless(Own(sys.argv[1], "lock:Lock"), "client-1", lambda: events, told)
sys.path.insert(0, sys.argv[1])
import lock
for events in range(int(sys.argv[2])):
    lock.acquire()
"""

# Each uses more than twice the processor time that is allowed without a wait.
SOUND = {
    "polls a server without a sleep": """
        here, there = socket.socketpair()
        def serve():
            while there.recv(1):
                there.send(b"x")
        threading.Thread(target=serve, daemon=True).start()
        while time.thread_time() < 0.9:
            here.send(b"x")
            here.recv(1)
    """,
    "waits for a thread that computes": """
        def compute():
            while time.thread_time() < 0.9:
                pass
        worker = threading.Thread(target=compute)
        worker.start()
        worker.join()
    """,
    "polls a server while a thread computes": """
        here, there = socket.socketpair()
        def serve():
            while there.recv(1):
                there.send(b"x")
        def compute():
            while True:
                pass
        for work in (serve, compute):
            threading.Thread(target=work, daemon=True).start()
        while time.thread_time() < 0.5:
            here.send(b"x")
            here.recv(1)
    """,
    "computes for a moment and waits, again and again": """
        for number in range(6):
            until = time.thread_time() + 0.15
            while time.thread_time() < until:
                pass
            for _ in range(300):
                time.sleep(0.0001)
    """,
}


@pytest.fixture
def run(tmp_path):
    def run(body, calls=1, look_s=0.1, uses="socket"):
        """`uses`: a module that takes nearly as long to import as an endless loop may last here, so
        it is imported before."""
        head = f"import {uses}, socket, threading, time\n\ndef acquire():\n"
        (tmp_path / "lock.py").write_text(head + textwrap.indent(textwrap.dedent(body), "    "))
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, tmp_path, str(calls), str(look_s), uses],
            capture_output=True,
            text=True,
            timeout=900,
        )

    return run


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_a_lock_that_waits_is_left_alone(run, body):
    ended = run(body)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_lock_that_sends_requests_by_connections_of_their_own_is_left_alone(run):
    """Its share of time in the kernel tells, which Linux may sample at clock ticks.

    So the looks are longer here: each has enough samples on a busy machine.
    """
    ended = run(
        """
        def serve():
            while True:
                link, _ = server.accept()
                link.recv(1000)
                link.send(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
                link.close()
        server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=serve, daemon=True).start()
        while time.thread_time() < 1.8:
            requests.post(f"http://127.0.0.1:{server.getsockname()[1]}/", json={"key": "a"}).json()
        """,
        look_s=0.3,
        uses="requests",
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_lock_in_an_endless_loop_is_ended_and_its_line_is_named(run):
    ended = run("""
        while True:
            try:
                sum(range(10))
            except BaseException:
                pass
    """)
    assert ended.returncode == 1
    assert re.match(r"lock:Lock does not terminate on client-1: it ran for 0\.\d s", ended.stdout)
    assert any(f"at lock.py, line {line}." in ended.stdout for line in (5, 6, 7)), ended.stdout


@pytest.mark.parametrize("others", [1, 3])
def test_a_lock_in_an_endless_loop_is_ended_while_other_threads_compute(run, others):
    ended = run(
        f"""
        def compute():
            while True:
                pass
        for _ in range({others}):
            threading.Thread(target=compute, daemon=True).start()
        while True:
            sum(range(10))
        """,
        look_s=0.4,
    )
    assert ended.returncode == 1
    assert "lock:Lock does not terminate on client-1" in ended.stdout


def test_a_lock_whose_calls_compute_for_a_moment_each_is_left_alone(run):
    ended = run(
        """
        until = time.thread_time() + 0.15
        while time.thread_time() < until:
            pass
        """,
        calls=8,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
