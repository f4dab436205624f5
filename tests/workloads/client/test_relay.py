"""The relay of a gate passes replies on in their order."""

from __future__ import annotations

import socket

from fencepost.workloads.client.relay import Relay


def test_replies_keep_their_order_while_the_program_is_stopped_between_two_of_them():
    """The gate takes further replies then: not those behind a reply that it still holds."""
    server = socket.create_server(("127.0.0.1", 0))

    def answered(number, pass_on):
        pass_on()
        if number == 1:
            peer.sendall(b"+3\r\n")
            for fd in relay.awaited():
                relay.take(fd)

    numbers = iter((1, 2, 3))
    relay = Relay(lambda place: next(numbers), answered)
    (at,) = relay.listen(["a"], {"a": server.getsockname()}, "").values()
    program = socket.create_connection(tuple(at))
    program.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" * 3)

    def turn():
        for fd, _ in relay.poll.poll(1000):
            relay.take(fd)
        for request in relay.asked:
            relay.send(request)
        relay.asked.clear()

    turn()
    peer, _ = server.accept()
    peer.settimeout(10)
    got = b""
    while got.count(b"GET") < 3:
        turn()
        got += peer.recv(1000)
    peer.sendall(b"+1\r\n+2\r\n")
    program.settimeout(10)
    said = b""
    while said.count(b"\r\n") < 3:
        turn()
        said += program.recv(1000)
    assert said == b"+1\r\n+2\r\n+3\r\n"
    for one in (server, peer, program):
        one.close()
