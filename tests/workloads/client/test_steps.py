"""Steps of an op: the same place of the code has the same number, wherever it runs."""

from __future__ import annotations

import threading
from random import Random

import pytest

from fencepost.nemesis.failpoints import REQUESTS
from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.steps import Step, Steps, Stops, before, connected
from fencepost.workloads.contract.lock import Env, Failed


class Link:
    """A link that records calls, and may be down."""

    def __init__(self, said, up=True):
        self.said, self.up = said, up

    def open(self):
        self.said.append("open")
        if not self.up:
            raise Failed("unreachable", "it is down")

    def send(self, *command):
        self.said.append(("send", *command))

    def receive(self):
        return "answer"

    def close(self):
        self.said.append("close")


class Watching:
    """Records calls."""

    def __init__(self):
        self.came, self.went = [], []

    def comes(self, step):
        self.came.append((step.number, step.kind, step.node))

    def over(self, step):
        self.went.append(step.number)


@pytest.fixture
def said():
    return []


@pytest.fixture
def env(said):
    def background(work):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    return Env(
        now=lambda: 7, sleep=lambda seconds: said.append(("sleep", seconds)), random=Random(1),
        connect=lambda node, timeout_s: Link(said), address=lambda node: (node, 1),
        failpoint=lambda name: said.append(("failpoint", name)), background=background,
        renewed=lambda secret, deadline: None, lost=lambda secret, why: None,
        expired=lambda why: None,
    )  # fmt: skip


def test_every_call_of_an_op_is_a_step_and_each_op_counts_from_one(env, said):
    watching = Watching()
    steps = Steps(watching)
    counted = steps.around(env)
    link = counted.connect("redis-1", 1.0)
    steps.begin()
    assert counted.now() == 7
    assert link.call("SET", "a") == "answer"
    counted.sleep(0.5)
    counted.failpoint("here")
    steps.begin()
    link.send("GET", "a")
    assert watching.came == [
        (1, "now", ""),
        (2, "send", "redis-1"),
        (3, "receive", "redis-1"),
        (4, "sleep", ""),
        (5, "failpoint", ""),
        (1, "send", "redis-1"),
    ]
    assert watching.went == [1, 2, 3, 4, 5, 1]
    assert said == [
        ("send", "SET", "a"),
        ("sleep", 0.5),
        ("failpoint", "here"),
        ("send", "GET", "a"),
    ]


def test_calls_of_a_lock_s_own_thread_are_not_counted(env):
    watching = Watching()
    steps = Steps(watching)
    counted = steps.around(env)
    steps.begin()
    counted.background(lambda: counted.now())
    own = threading.Thread(target=counted.now)
    own.start()
    own.join()
    counted.now()
    assert watching.came == [(1, "now", "")]


def test_calls_within_a_step_are_no_steps(env):
    watching = Watching()
    steps = Steps(watching)
    counted = steps.around(env)
    steps.begin()
    steps.step("connect", counted.now, "redis-1")
    counted.now()
    assert watching.came == [(1, "connect", "redis-1"), (2, "now", "")]


class Armed(Failpoints):
    """Records where it would stop."""

    def __init__(self, said):
        super().__init__(None)
        self.said = said

    def reach(self, name, port=0):
        if self.is_armed(name):
            self.disarm(name)
            self.said.append((name, port) if port else name)


@pytest.mark.parametrize("up", [True, False])
def test_a_client_stops_before_a_step_or_once_it_has_connected_for_it(said, up):
    points = Armed(said)
    for point in (before(1), connected(2)):
        points.arm(point)
    stops = Stops(points)
    link = Link(said, up)
    stops.comes(Step(1, "send", "redis-1", ("SET",), link))
    stops.comes(Step(2, "send", "redis-1", ("SET",), link))
    stops.comes(Step(3, "send", "redis-1", ("SET",), link))
    assert said == [before(1), "open", connected(2)]


class Socket:
    """A socket from port 40000."""

    def getsockname(self):
        return "10.0.0.1", 40_000


def test_a_client_that_opens_its_connection_itself_stops_once_it_has_and_says_from_where(said):
    points = Armed(said)
    points.arm(connected(1))
    stops, step = Stops(points), Step(1, "connect", "redis-1", (), Socket())
    stops.comes(step)
    assert said == []
    stops.over(step)
    assert said == [(connected(1), 40_000)]


def _stops(steps, f, *taken):
    """Take the steps of an op: kinds, with the command of a send."""
    steps.begin(f)
    for one in taken:
        kind, _, command = one.partition(" ")
        steps.step(kind, lambda: None, "redis-1", tuple(command.split()))


CHECK_THEN_DELETE = ("now", "send GET k", "receive", "send DEL k", "receive")
POLLS = ("send SET k", "receive", "send SET k", "receive")
SECOND = ("send SETNX k", "receive", "send EXPIRE k", "receive")
TWO_SERVERS = ("send DEL k", "send DEL k", "receive", "receive")


@pytest.mark.parametrize(
    ("f", "taken", "reached"),
    [
        ("release", CHECK_THEN_DELETE, ["before-release", "between-requests"]),
        ("release", TWO_SERVERS, ["before-release"]),
        ("extend", ("send EXPIRE k", "receive"), ["before-extend", "extend-in-flight"]),
        ("acquire", POLLS, ["before-acquire", "replies-in-flight"]),
        ("acquire", SECOND, ["before-acquire", "replies-in-flight", "between-requests"]),
        ("write", ("send SET k", "receive"), []),
    ],
)
def test_the_requests_of_an_op_are_failpoints(said, f, taken, reached):
    points = Armed(said)
    for point in REQUESTS:
        points.arm(point)
    steps = Steps(Stops(points, replies=True))
    _stops(steps, f, *taken)
    assert said == reached


def test_each_op_has_its_first_request_again_and_a_lock_s_own_reply_is_left_to_it(said):
    points = Armed(said)
    steps = Steps(Stops(points))
    points.arm("replies-in-flight")
    _stops(steps, "acquire", *POLLS)
    for _ in range(2):
        points.arm("before-release")
        _stops(steps, "release", "send DEL k", "receive")
    assert said == ["before-release", "before-release"]
