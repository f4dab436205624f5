"""The process of a client's program is followed when the program is started again."""

from __future__ import annotations

import json
import threading
import time

import pytest

from fencepost.harness.clients.present_process import PresentProcess
from fencepost.harness.remote.processes import CLIENT
from fencepost.harness.remote.remote import Result


class Node:
    """A node with processes: their state, by pid."""

    def __init__(self, **states):
        self.states = {int(pid[1:]): state for pid, state in states.items()}

    def run(self, argv, **more):
        pid = int(argv[-1])
        there = pid in self.states
        shown = {"started": f"s{pid}" if there else None, "mark": CLIENT if there else None}
        return Result(0, json.dumps(shown), "")

    def state(self, pid, started=None):
        return self.states.get(pid)


class Client:
    def __init__(self, node):
        self.closing = self.gone = False
        self.changed = threading.Condition()
        self.process = PresentProcess(node, self.changed, lambda: self.closing, lambda: self.gone)

    def later(self, act):
        """Act in another thread, and return what `now` returned and whether it waited for that."""
        acted = threading.Event()

        def run():
            time.sleep(0.1)
            acted.set()
            with self.changed:
                act()
                self.changed.notify_all()

        threading.Thread(target=run).start()
        found = self.process.now()
        return found.pid, acted.is_set()


@pytest.fixture
def node():
    return Node(p7="S", p8="S")


@pytest.fixture
def client(node):
    found = Client(node)
    assert found.process.now() is None
    assert found.process.begin(7, restarts=True)
    return found


def test_a_pid_that_no_client_has_is_refused(node):
    client = Client(node)
    assert not client.process.begin(9, restarts=False)
    assert not client.process.begin(0, restarts=False)


def test_a_process_that_closes_is_followed_by_its_successor(client, node):
    assert client.process.now().pid == 7
    client.closing = True

    def successor():
        del node.states[7]
        client.process.succeed(8)
        client.closing = False

    assert client.later(successor) == (8, True)
    assert client.process.now().started == "s8"


def test_the_latest_process_is_known_without_waiting_for_the_end_of_a_close(client):
    client.closing = True
    assert client.process.latest().pid == 7
    client.process.succeed(8)
    assert client.process.latest().pid == 8


def test_a_program_that_executes_itself_again_keeps_its_pid(node):
    client = Client(node)
    client.process.begin(7, restarts=False)
    client.closing = True
    assert client.process.now().pid == 7


def test_a_process_that_is_stopped_before_its_end_is_the_present_one(client, node):
    client.closing = True
    node.states[7] = "T"
    assert client.process.now().pid == 7


def test_a_program_without_a_successor_keeps_its_last_process(client):
    client.closing = True

    def gone():
        client.gone = True

    assert client.later(gone) == (7, True)
