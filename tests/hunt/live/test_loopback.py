"""Hunts on one machine have no address in common as long as a client of either may live."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from fencepost.hunt.live import loopback
from fencepost.hunt.live.loopback import Loopback
from fencepost.hunt.sim.unknown import Unknown

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere loopback has one address"
)


@contextmanager
def taken(clients):
    made = Loopback(clients)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def ranges(monkeypatch):
    """Three ranges of this test's own."""
    monkeypatch.setattr(loopback, "_RANGES", range(1, 4))
    monkeypatch.setattr(loopback, "_NAME", f"\0fencepost-test-{os.getpid()}-{{}}")


def addresses(one, clients):
    return {one.address(client, server) for client in range(clients) for server in range(6)}


def test_two_hunts_at_once_share_no_address(ranges):
    with taken(10) as one, taken(10) as other:
        assert len(addresses(one, 10)) == 60
        assert not addresses(one, 10) & addresses(other, 10)


def test_a_hunt_of_many_clients_takes_several_ranges(ranges):
    with taken(300) as one, taken(2) as other:
        assert len(addresses(one, 300)) == 1800
        assert not addresses(one, 300) & addresses(other, 2)


def test_a_hunt_without_addresses_is_refused_and_one_that_has_ended_leaves_its_own(ranges):
    with taken(2), taken(2):
        with pytest.raises(Unknown, match="for 300 clients, and other hunts on this machine use"):
            Loopback(300)
        with taken(2), pytest.raises(Unknown):
            Loopback(2)
    with taken(3 * 254):
        pass


HUNT = """
import subprocess, sys, time
from fencepost.hunt.live import loopback
from fencepost.hunt.live.guard import Guard

loopback._NAME, loopback._RANGES = sys.argv[1].replace("@", chr(0)), range(1, 2)
taken = loopback.Loopback(2)
guard = Guard(taken.held)
client = subprocess.Popen(["sleep", "600"], start_new_session=True)
guard.add(client.pid)
print(client.pid, guard._process.pid, flush=True)
time.sleep(600)
"""


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def is_free():
    try:
        Loopback(2).close()
    except Unknown:
        return False
    return True


def test_the_addresses_of_a_hunt_that_was_killed_are_held_as_long_as_its_clients_live(monkeypatch):
    name = f"@fencepost-test-{os.getpid()}-{{}}"
    monkeypatch.setattr(loopback, "_RANGES", range(1, 2))
    monkeypatch.setattr(loopback, "_NAME", name.replace("@", "\0"))
    words = [sys.executable, "-c", HUNT, name]
    hunt = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    found = SimpleNamespace()
    try:
        assert hunt.stdout is not None
        found.client, found.guard = map(int, hunt.stdout.readline().split())
        # As on a busy machine, on which the guard gets no processor.
        os.kill(found.guard, signal.SIGSTOP)
    finally:
        hunt.kill()
        hunt.wait()
        hunt.stdout.close()
    try:
        assert lives(found.client) and not is_free()
    finally:
        os.kill(found.guard, signal.SIGCONT)
    while not is_free():
        time.sleep(0.01)
    while lives(found.client):  # its signal is under way
        time.sleep(0.01)
