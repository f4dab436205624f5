"""Connections on which both sides speak at any time deliver in order, as TCP does."""

from __future__ import annotations

import pytest

from fencepost.hunt.intercept.duplex import Down, Duplex, Up
from fencepost.hunt.sim.network import LATENCY, Network
from fencepost.hunt.sim.world import MS, Node, Timer, World


class Session:
    """The server's end: it keeps the commands that it executes."""

    over = unasked = False

    def __init__(self):
        self.line = None
        self.done = []

    def execute(self, server, command):
        self.done.append(command[0])
        return True

    def encoded(self, command, reply):
        return b""

    def is_about_data(self, command):
        return True


class Server(Node):
    def __init__(self):
        super().__init__("server-1", 0)
        self.boots = 0
        self.gone = []

    def left(self, link):
        self.gone.append(link)


class Link:
    """A client's socket: it keeps the bytes that it reads."""

    def __init__(self, network):
        self.network, self.client, self.server = network, Node("client-1", 0), Server()
        self.ends, self.latency = (0, 0), LATENCY
        self.session = Session()
        self.read, self.ended, self.was_reset = b"", False, False
        self.duplex = self.session.line = Duplex(self)

    def sent_back(self, down):
        pass

    def arrived(self, request):
        data, ends = self.duplex.take(request)
        self.read += data
        self.ended = self.ended or ends

    def reset(self):
        self.was_reset = True


@pytest.fixture
def link():
    return Link(Network(World(), None))


def events(link, kind):
    return [event for _, _, event in link.network.world.queue if type(event) is kind]


def late(link, event, by_ns):
    """Delay a message, as the fault does."""
    event.off = True
    world = link.network.world
    world.at(world.now + by_ns, event.later())


def run(link):
    link.network.world.run()


def test_requests_that_follow_a_late_one_are_executed_after_it(link):
    for word in "abc":
        link.duplex.send(((word,),))
    late(link, events(link, Up)[0], 5 * LATENCY)
    run(link)
    assert link.session.done == ["a", "b", "c"]
    assert link.network.world.now == 5 * LATENCY


def test_nothing_that_follows_a_lost_request_is_executed_before_the_network_is_right(link):
    for word in "abc":
        link.duplex.send(((word,),))
    events(link, Up)[1].off = True
    run(link)
    assert link.session.done == ["a"]
    link.duplex.recover()
    run(link)
    assert link.session.done == ["a", "b", "c"]


def test_a_request_that_is_lost_after_it_was_late_arrives_when_the_network_is_right(link):
    link.duplex.send((("a",),))
    (up,) = events(link, Up)
    up.off, again = True, up.later()
    link.duplex.moved(up, again)
    again.off = True
    link.duplex.recover()
    run(link)
    assert link.session.done == ["a"]


def test_requests_that_are_sent_into_a_cut_are_sent_again_at_times_that_double(link):
    world = link.network.world
    link.network.requests_cut.add(link.ends)
    for word in "abc":
        link.duplex.send(((word,),))
    world.at(MS * 1500, Timer(world.nowhere, link.network.requests_cut.clear))
    run(link)
    assert link.session.done == ["a", "b", "c"]
    assert world.now == MS * 3000 + LATENCY  # 0.2 + 0.4 + 0.8 + 1.6 s


def test_requests_after_a_cut_wait_for_those_that_were_sent_into_it(link):
    world = link.network.world
    link.network.requests_cut.add(link.ends)
    link.duplex.send((("a",),))
    link.network.requests_cut.clear()
    link.duplex.send((("b",),))
    world.at(MS * 100, Timer(world.nowhere, lambda: link.session.done.append("nothing yet")))
    run(link)
    assert link.session.done == ["nothing yet", "a", "b"]


def test_a_request_that_arrives_twice_is_executed_once(link):
    link.duplex.send((("a",),))
    world = link.network.world
    world.at(3 * LATENCY, events(link, Up)[0].later())
    run(link)
    assert link.session.done == ["a"]


def test_what_the_server_says_unasked_arrives_in_order_and_after_a_late_message(link):
    for data in (b"1", b"2", b"3"):
        link.duplex.say(data)
    late(link, events(link, Down)[0], 7 * LATENCY)
    run(link)
    assert link.read == b"123"


def test_nothing_that_follows_lost_bytes_can_be_read_before_they_are_sent_again(link):
    for data in (b"1", b"2", b"3"):
        link.duplex.say(data)
    events(link, Down)[1].off = True
    run(link)
    assert link.read == b"1"
    link.duplex.recover()
    run(link)
    assert link.read == b"123"


def test_bytes_that_are_sent_into_a_cut_can_be_read_after_it(link):
    link.network.replies_cut.add(link.ends)
    link.duplex.say(b"1")
    link.duplex.hang_up()
    world = link.network.world
    world.at(MS * 300, Timer(world.nowhere, link.network.replies_cut.clear))
    run(link)
    assert (link.read, link.ended) == (b"1", True)
    assert world.now == MS * 600 + LATENCY


def test_the_end_of_a_connection_comes_after_what_was_sent_on_it(link):
    link.duplex.say(b"1")
    link.duplex.hang_up()
    assert not link.duplex.open
    late(link, events(link, Down)[0], 7 * LATENCY)
    run(link)
    assert (link.read, link.ended) == (b"1", True)


def test_a_server_reads_what_a_client_sent_before_it_closed(link):
    link.duplex.send((("a",),))
    link.duplex.closed()
    late(link, events(link, Up)[0], 7 * LATENCY)
    run(link)
    assert link.session.done == ["a"]
    assert link.server.gone == [link]


def test_a_server_hears_of_a_close_after_a_cut(link):
    link.network.requests_cut.add(link.ends)
    link.duplex.closed()
    world = link.network.world
    world.at(MS * 100, Timer(world.nowhere, lambda: link.server.gone.append("not yet")))
    world.at(MS * 150, Timer(world.nowhere, link.network.requests_cut.clear))
    run(link)
    assert link.server.gone == ["not yet", link]


@pytest.mark.parametrize("before", [True, False])
def test_a_server_that_has_restarted_resets_a_connection_of_before(link, before):
    """Also if the client sends only now, because a cut has hidden the crash from it."""
    if before:
        link.duplex.send((("a",),))
    link.server.boots += 1
    if not before:
        link.duplex.send((("a",),))
    run(link)
    assert link.session.done == [] and link.was_reset
