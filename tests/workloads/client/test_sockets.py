"""A lock's own connections are counted as steps, in whatever pieces it uses them."""

from __future__ import annotations

import socket
import threading

import pytest

from fencepost.workloads.client import sockets
from fencepost.workloads.client.sockets import Sockets, first_word
from fencepost.workloads.client.steps import Steps


class Watching:
    """Records calls."""

    def __init__(self):
        self.came = []

    def comes(self, step):
        self.came.append((step.number, step.kind, step.node, *step.command))

    def over(self, step): ...


@pytest.fixture
def server():
    """Start a server that answers each message in two pieces; return its address."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                while connection.recv(1000):
                    connection.sendall(b"+O")
                    connection.sendall(b"K\r\n")

    threading.Thread(target=serve, daemon=True).start()
    yield listening.getsockname()
    listening.close()


@pytest.fixture
def counted(server, monkeypatch):
    """Return the counted steps of this process' sockets to the server."""
    # Earlier hunts in this process have patched it.
    real = next(one for one in socket.socket.__mro__ if one.__module__ == "socket")
    monkeypatch.setattr(socket, "socket", real)
    watching = Watching()
    steps = Steps(watching)
    steps.begin()
    before = dict(vars(real))
    sockets.count(Sockets(steps), {"redis-1": server})
    yield watching.came
    for name in vars(real).keys() - before.keys():
        delattr(real, name)


def line(client):
    found = b""
    while not found.endswith(b"\r\n"):
        found += client.recv(1)
    return found


def test_connecting_each_send_and_the_first_look_for_its_answer_are_steps(server, counted):
    with socket.create_connection(server) as client:
        client.sendall(b"*1\r\n$4\r\nPING\r\n")
        assert line(client) == b"+OK\r\n"
        client.send(b"set a b\r\n")
        line(client)
    assert counted == [
        (1, "connect", "redis-1"),
        (2, "send", "redis-1", "PING"),
        (3, "receive", "redis-1"),
        (4, "send", "redis-1", "SET"),
        (5, "receive", "redis-1"),
    ]


def test_a_client_s_greeting_is_no_step(server, counted):
    with socket.create_connection(server) as client:
        client.sendall(b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n")
        line(client)
    assert counted == [(1, "connect", "redis-1")]


def test_messages_of_another_thread_are_no_steps(server, counted):
    def renew():
        with socket.create_connection(server) as client:
            client.sendall(b"PING\r\n")
            line(client)

    thread = threading.Thread(target=renew)
    thread.start()
    thread.join()
    assert counted == []


def test_other_connections_are_left_alone(counted):
    near, far = socket.socketpair()
    with near, far:
        near.sendall(b"SET a b\r\n")
        assert far.recv(20) == b"SET a b\r\n"
    with socket.create_server(("127.0.0.1", 0)) as other:
        socket.create_connection(other.getsockname()).close()
    assert counted == []


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\nb\r\n", b"SET"),
        (b"get a\r\n", b"GET"),
        (b"\r\n", b""),
        (b"", b""),
    ],
)
def test_the_first_word_of_a_message_is_its_command(data, name):
    assert first_word(data) == name
