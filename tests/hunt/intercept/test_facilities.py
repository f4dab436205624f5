"""Parts of the standard library that a lock may use in a hunt, and how the rest is refused."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.twin import moments
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.unknown import Unknown

LOCKS = Path(__file__).parents[1] / "locks_facilities.py"
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has epoll")


def asked(name, file=LOCKS):
    return described(f"{file}:{name}", {}, {"seed": 1}, servers="redis:1", faults="pause,packet")


def run(name, *injections):
    setting = asked(name).setting
    return Run(setting, Schedule((), injections), table(setting)).execute()


@pytest.fixture
def same_policy():
    before = asyncio.get_event_loop_policy()
    yield
    asyncio.set_event_loop_policy(before)


@pytest.mark.parametrize(
    "name",
    ["Plain", "Polls", pytest.param("Epolls", marks=linux), "Selects", "Pipes", "Pools",
     "Encrypts", "Wraps", "Awaits", "AwaitsEncrypted", "AnotherPolicy",
     "NamesItself"],
)  # fmt: skip
def test_it_is_granted_and_released_and_its_runs_are_repeated_exactly(name, same_policy):
    done = [row[2:4] for row in run(name).rows if row[2] != "invoke"]
    assert done.count(("ok", "acquire")) >= 2 and done.count(("ok", "release")) >= 2
    assert ("info", "acquire") not in done
    setting, schedule = asked(name).setting, Schedule((3,), ((60, 1),))
    assert moments(setting, schedule) == moments(setting, schedule)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Forks", "it calls os.fork, and other processes are not simulated: use threads"),
        ("Runs", "it calls subprocess.Popen, and other processes are not simulated: use threads"),
        ("Starts", "it calls subprocess.Popen, and other processes are not simulated"),
        ("ProcessPool", "ProcessPoolExecutor, and other processes are not simulated: use threads"),
        ("ProcessPipe", "it calls multiprocessing.connection.Pipe, and other processes"),
        ("Alarm", "it calls signal.alarm, and signals are not simulated: use threading.Timer"),
        ("Handler", "it calls signal.signal, and signals are not simulated: leave their handlers"),
        ("Handles", "it calls signal.set_wakeup_fd, and signals are not simulated"),
        ("Kills", "it calls os.kill, and a simulated process does not end, and gets no signal"),
    ],
)
def test_what_would_leave_the_simulation_is_refused_with_a_way_out(name, told):
    with pytest.raises(Unknown, match=told):
        run(name)


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("multiprocessing", "other processes are not simulated: use threads"),
        ("subprocess", "other processes are not simulated: use threads"),
        ("signal", "signals are not simulated: use threading.Timer or a timeout"),
        ("trio", "it has its own scheduler: asyncio can be simulated, and anyio on it"),
    ],
)
def test_an_import_of_it_is_refused_before_the_hunt(module, told, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f"import {module}\n" + LOCKS.read_text().replace("from __future__ ", "#", 1))
    with pytest.raises(BadArguments, match=f"mine.py imports {module}, and {told}"):
        asked("Plain", file)


def test_outside_of_a_run_everything_is_as_before():
    run("Wraps")
    reads, writes = os.pipe()
    os.write(writes, b"x")
    assert os.read(reads, 1) == b"x"
    os.close(reads)
    os.close(writes)
    assert subprocess.run([sys.executable, "-c", ""]).returncode == 0
    loop = asyncio.new_event_loop()
    loop.close()
    assert isinstance(loop, asyncio.AbstractEventLoop)
    with socket.socket() as plain:
        context = ssl.create_default_context()
        wrapped = context.wrap_socket(plain, server_hostname="a", do_handshake_on_connect=False)
        assert isinstance(wrapped, ssl.SSLSocket)
        wrapped.close()


def test_a_server_s_name_may_be_bytes():
    """anyio looks up names so."""
    from fencepost.hunt.intercept.sockets import address_info

    found = []

    class Asking(Run):
        def start_clients(self):
            super().start_clients()
            self.begin(self.clients[0], lambda: found.append(address_info(b"redis-1", 6379)))

    setting = asked("Plain").setting
    Asking(setting, Schedule(), table(setting)).execute()
    assert found[0][0][4] == ("redis-1", 6379)
