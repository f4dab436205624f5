"""When a fault hinders a client or a server, compared with a look at each fault at each instant."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import replace
from itertools import pairwise
from random import Random
from types import SimpleNamespace

import pytest

from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.hindered import Hindered, Sent, over_with, prolonged
from fencepost.checker.history.history import Call, Op

FOREVER = float("inf")
CLIENTS, SERVERS = frozenset({"c1", "c2"}), frozenset({"s1", "s2", "s3"})
NODES = sorted(CLIENTS | SERVERS)
LAST = 40
Hold = namedtuple("Hold", "node start furthest renewals")


def drawn(random, name):
    """Draw a fault; times are small, so that many coincide."""
    start = random.randrange(20)
    some = random.sample(sorted(CLIENTS if random.random() < 0.5 else NODES), random.randint(1, 2))
    links = [tuple(random.sample(NODES, 2)) for _ in range(random.choice((0, 1, 2)))]
    processes = [1] if random.random() < 0.1 else []
    end = None if random.random() < 0.1 else start + random.choice((0, 0, 1, 3, 8))
    whole = end is not None and random.random() < 0.7
    return Fault(
        name=str(name),
        family="mine",
        targets=some,
        arguments=random.choice(({}, {}, {"offset_s": 3e-9}, {"rate": 3.0})),
        start=start,
        end=end,
        proved=random.random() < 0.7,
        healed=True,
        receipts=[{"proved": True, "processes": processes}],
        impairs=random.choice((None, *[frozenset(some)] * 6, frozenset())),
        links=None if random.random() < 0.2 else tuple(links),
        loses=random.random() < 0.2,
        rejects=random.random() < 0.4,
        surely=(start + (end > start), max(start, end - 1)) if whole else None,
    )


def over(fault):
    return FOREVER if fault.end is None else fault.end


def fixpoint(until, begin, spans, later):
    while True:
        met = [end for since, end in spans if since <= until and end >= begin]
        furthest = max([until, *map(later, met)])
        if furthest == until:
            return until
        until = furthest


class Naive:
    """The same as Hindered, by its definition."""

    def __init__(self, on):
        self.everybody, self.own, self.between = [], [], []
        for fault in on:
            kills = fault.receipts[0]["processes"] and fault.impairs is not None
            if kills and fault.impairs <= CLIENTS:
                continue
            nodes = fault.impairs or set(fault.targets)
            everybody = fault.impairs is None or nodes & SERVERS
            if fault.impairs and self.cuts_off(fault):
                self.between.append(fault)
            else:
                (self.everybody if everybody else self.own).append(fault)
        self.kept = self.survived()
        for fault in self.between:
            (self.everybody if fault.name in self.kept else self.own).append(fault)

    def whose(self, fault):
        """Return the clients that a fault hinders."""
        if fault in self.between:
            return {node for link in fault.links for node in link} & CLIENTS
        return fault.impairs

    def start(self, fault):
        lost = fault.impairs is None and fault.end is None and not fault.proved
        return 0 if lost else fault.start

    def on(self, node, begin, end):
        """Return the faults of this client that touch a time."""
        mine = [f for f in self.own if node in self.whose(f)]
        return [f for f in mine if f.start <= end and over(f) >= begin]

    def reached(self, node, begin, end):
        servers = [f for f in self.everybody if f.impairs != frozenset()]
        down = any(self.start(f) <= end and over(f) >= begin for f in servers)
        return not down and not self.on(node, begin, end)

    def outlasts(self, hold, until, lease):
        while True:
            met = self.on(hold.node, hold.start, until)
            if hold.furthest < FOREVER:
                deaf = [f for f in met if f.links is None or f.links or f.loses]
                met = deaf if hold.renewals else []
            later = max([until, *(over(fault) + lease for fault in met)])
            if later == until:
                return until
            until = later

    def arrived(self, node, begin, until, delay, closed):
        crossed = [f for f in self.everybody if not self.misses(f, node)]
        own = [f for f in self.own if node in self.whose(f)]
        own = [f for f in own if f.links or f.loses or f.links is None]
        on = [f for f in (*crossed, *own) if f.impairs != frozenset()]
        stopped = max([until, *(over(f) for f in self.on(node, until, until))])
        spans = [(self.start(f), over(f)) for f in on]
        arrived = self.delivered(begin, stopped, delay, spans)
        if closed == FOREVER:
            return arrived
        spans = [span for f in on for span in self.holds(f)]
        return min(arrived, self.delivered(begin, max(until, closed), delay, spans))

    def holds(self, fault):
        """Return when a fault holds messages of a client back that has closed."""
        if not (fault.rejects and fault.surely and self.cuts_off(fault)):
            return [(self.start(fault), over(fault))]
        return [(fault.start, fault.surely[0]), (fault.surely[1], over(fault))]

    def delivered(self, begin, until, delay, blocked):
        met = [start for start, end in blocked if start <= until + delay and end >= begin]
        since = max(begin, min(met, default=begin) - delay)
        return fixpoint(until + delay, begin, blocked, lambda end: 2 * end - since + delay)

    def settled(self, begin, arrived, tail):
        mine = (f for f in self.everybody if not self.cuts_off(f))
        prolonged = [(self.start(f), self.right(f)) for f in mine]
        return fixpoint(arrived + tail, begin, prolonged, lambda end: end + tail)

    def cuts_off(self, fault):
        """Return whether a fault separates nothing but clients from servers."""
        links = fault.links if fault.impairs is not None else ()
        return bool(links) and all(CLIENTS & set(link) for link in links)

    def misses(self, fault, node):
        return self.cuts_off(fault) and not any(node in link for link in fault.links)

    def right(self, fault):
        """Return when leases end at the latest that began with a fault and have no length."""
        wrong = 3 if "offset_s" in fault.arguments else 0
        drifted = (fault.arguments.get("rate", 1) - 1) * (over(fault) - self.start(fault))
        return over(fault) + wrong + (drifted if over(fault) < FOREVER else 0)

    def survived(self):
        """Return the faults at each moment of which a majority was left: to all, or to each client
        of a cut."""
        lost = {f.name for f in self.between if not all(SERVERS & set(link) for link in f.links)}
        for now in range(LAST):
            everybody = [f for f in self.everybody if self.active(f, now)]
            between = [f for f in self.between if self.active(f, now)]
            down, unknown = set(), any(f.impairs is None for f in everybody)
            for fault in everybody:
                down |= (fault.impairs or set(fault.targets)) & SERVERS
            if 2 * len(down) >= len(SERVERS) or unknown:
                lost |= {fault.name for fault in everybody}
            for client in CLIENTS:
                cuts = [f for f in between if any(client in link for link in f.links)]
                links = [link for f in cuts for link in f.links if client in link]
                far = {node for link in links for node in link} & SERVERS
                if 2 * len(down | far) >= len(SERVERS) or unknown:
                    lost |= {fault.name for fault in cuts}
        return {fault.name for fault in (*self.everybody, *self.between)} - lost

    def active(self, fault, now):
        start = self.start(fault)
        return start <= now and (over(fault) > now or start == fault.end == now)


def cases(count):
    for seed in range(count):
        random = Random(seed)
        on = [drawn(random, name) for name in range(random.randrange(5))]
        found = Hindered(on, CLIENTS, SERVERS, True, True)
        begin = random.randrange(25)
        node = random.choice((*sorted(CLIENTS), None))
        yield random, found, Naive(on), node, begin, begin + random.randrange(8)


def test_a_client_is_hindered_whenever_a_fault_of_its_own_is_on():
    touched = 0
    for _, found, naive, node, begin, end in cases(2000):
        spans = found.met(node, begin, end)
        assert found.meets(node, begin, end) is bool(naive.on(node, begin, end)) is bool(spans)
        for now in range(2 * begin, 2 * end + 1):  # in halves: between two instants as well
            at = now / 2
            covered = any(since <= at <= until for since, until in spans)
            assert covered is bool(naive.on(node, at, at))
        assert all(a[1] < b[0] for a, b in pairwise(spans))
        touched += len(spans) > 1
    assert touched > 4


def test_a_release_reached_all_servers_if_no_fault_was_on():
    for random, found, naive, node, begin, end in cases(2000):
        op = Op(0, begin, 1, "invoke", "release", {}, None, node)
        done = None if random.random() < 0.2 else Op(1, end, 1, "ok", "release", {}, None, node)
        until = FOREVER if done is None else end
        assert found.reached(Call(op, done)) is naive.reached(node, begin, until)


def test_a_lock_on_servers_that_agree_is_reached_at_once():
    (fault,) = [drawn(Random(0), "f")]
    found = Hindered([fault], CLIENTS, SERVERS, True, False)
    op = Op(0, 0, 1, "invoke", "release", {}, None, "c1")
    assert found.reached(Call(op, None)) is True


def test_a_fault_of_its_client_prolongs_a_hold():
    longer = 0
    for random, found, naive, node, begin, end in cases(2000):
        furthest = random.choice((FOREVER, end))
        hold = Hold(node, begin, furthest, random.choice(((), ((begin, end),))))
        until = random.choice((end, end, FOREVER))
        lease = random.randrange(4)
        expected = naive.outlasts(hold, until, lease)
        assert found.outlasts(hold, until, lease) == expected
        longer += end < expected < FOREVER
    assert longer > 20


def test_a_request_settles_after_the_last_fault_that_may_have_delayed_it():
    for random, found, naive, node, begin, end in cases(2000):
        delay, closed = (
            random.randrange(3),
            random.choice((FOREVER, end, end + random.randrange(9))),
        )
        arrived, tail = found.arrived(Sent(node, begin, end, closed), delay), random.randrange(4)
        assert arrived == naive.arrived(node, begin, end, delay, closed)
        assert found.settled(begin, arrived, tail) == naive.settled(begin, arrived, tail)


def cut_or_pause(random, name):
    """Draw a fault that cuts a client off from a server, or stops a server."""
    start = random.randrange(60)
    cuts = random.random() < 0.6
    end = start + random.choice((1, 4, 9, 20))
    fault = Fault(str(name), "mine", ["s1"], {}, start, end, proved=True, healed=True)
    fault = replace(fault, impairs=frozenset({"s1"}), links=(("c1", "s1"),) if cuts else ())
    placed = (
        start + random.randint(0, (end - start) // 3),
        end - random.randint(0, (end - start) // 3),
    )
    return replace(fault, rejects=cuts and random.random() < 0.5, surely=placed)


def held_until(random, on, begin, over, lease):
    """Return until when a request holds the lock that TCP sends again until it arrives, at twice
    the interval each time, and that a server handles as soon as it is not stopped; None if its
    connection is reset before."""
    sent = attempt = random.randint(begin, over)
    interval = 1
    while met := [one for one in on if one.links and one.start <= attempt < one.end]:
        if any(one.rejects and one.surely[0] <= attempt < one.surely[1] for one in met):
            return None
        if all(one.rejects and random.random() < 0.5 for one in met):
            return None  # put in place at this end
        attempt, interval = attempt + interval, 2 * interval
    stops = sorted((one.start, one.end) for one in on if not one.links)
    handled = max([attempt, *(end for start, end in stops if start <= attempt < end)])
    until = handled + lease
    for start, end in stops:
        until = max(until, end + lease) if start < until and end > handled else until
    return sent, attempt, until


def test_a_request_has_settled_by_the_time_at_which_tcp_delivers_it_and_its_lease_ends():
    late = tight = 0
    for seed in range(8000):
        random = Random(seed)
        on = [cut_or_pause(random, name) for name in range(random.randrange(6))]
        begin = random.randrange(20)
        over, lease = begin + random.randrange(4), random.randrange(4)
        held = held_until(random, on, begin, over, lease)
        if held is None:
            continue
        sent, attempt, until = held
        found = Hindered(on, CLIENTS, SERVERS, False, True)
        closed = random.choice((FOREVER, over, over + 2))
        arrived = found.arrived(Sent("c1", begin, over, closed), 1)
        settled = found.settled(begin, arrived, lease)
        assert attempt <= arrived and until <= settled, seed
        late += attempt > sent + 8
        tight += settled <= until + 2
    assert late > 200 and tight > 500


def test_a_fault_is_survived_if_a_majority_was_left_at_each_moment_of_it():
    some = 0
    for _, found, naive, *_ in cases(2000):
        assert found.survived == naive.kept
        some += 0 < len(found.survived) < len(found.servers)
    assert some > 100


def test_a_lost_node_may_have_been_gone_from_the_start():
    lost = Fault("f", "mine", ["s1"], {}, 7, None, False, False)
    (found,) = Hindered([lost], CLIENTS, SERVERS, True, False).servers
    assert found.start == 0


@pytest.mark.parametrize("node", ["c1", "s1"])
@pytest.mark.parametrize(("begin", "calm"), [(20, False), (21, True)])
def test_it_is_calm_once_a_fault_has_ended_for_as_long_as_it_was_on(node, begin, calm):
    fault = Fault("f", "mine", [node], {}, 10, 15, proved=True, healed=True)
    fault = replace(fault, impairs=frozenset({node}), links=())
    found = Hindered([fault], CLIENTS, SERVERS, True, False)
    assert found.calm("c1", begin, 30) is calm


@pytest.mark.parametrize(
    ("arguments", "ends"),
    [
        ({}, 15),
        ({"offset_s": -2}, 15 + 2e9),
        ({"rate": 3}, 35),
        ({"rate": 0.5}, 20),
        ({"offset_s": 2, "rate": 3}, 35 + 2e9),
        ({"offset_s": "all", "rate": None}, 15),
    ],
)
def test_a_wrong_clock_prolongs_leases_by_as_much(arguments, ends):
    fault = Fault("f", "clock", ["s1"], arguments, 0, 10, True, True)
    assert over_with(fault, 5) == ends


def test_a_fault_prolongs_the_longest_lease_that_it_meets():
    for seed in range(500):
        random = Random(seed)
        on = []
        for name in range(random.randrange(4)):
            start = random.randrange(15)
            end = random.choice((None, start, start + 4))
            on.append(SimpleNamespace(name=name, start=start, end=end))
        leases = []
        for _ in range(random.randrange(9)):
            begin = random.randrange(20)
            leases.append((begin, begin + random.randrange(6), random.randrange(1, 50)))
        expected = {
            f.name: max((t for b, o, t in leases if b <= over(f) and o >= f.start), default=0)
            for f in on
        }
        assert prolonged(on, leases) == expected
