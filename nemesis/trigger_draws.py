"""Draws triggered faults (triggers.py) from the seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count
from random import Random
from typing import Any

from msgspec.structs import replace

from fencepost.nemesis import packet, pause
from fencepost.nemesis.failpoints import ALL_FAILPOINTS, BEFORE, REPLIES
from fencepost.nemesis.families import FAMILIES, check
from fencepost.nemesis.family import Family
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import HOLDER, SERVERS, Drawn, Layout
from fencepost.nemesis.triggers import Injection, Trigger

_LEFT = 0.05
"""The part of a lease that is left at its edge."""
_LONG = 5
"""One of five faults of an entry, the third first, lasts longer than a lease and the bound of
liveness, if it may keep servers from answering. Only such a fault shows whether the lock is granted
while these servers are away, but it takes the time of three others."""
_REQUESTS = 0.7
"""How often a fault that can meet a request is aimed at one."""
_HOLDERS = 0.85
"""How often a pause or a kill of clients hits the holder. Else it hits any of them, so that those
that wait for the lock have their turn."""
_SHORT, _PAST, _AT_ONCE = (0.2, 0.8), (1.0, 1.5), (0.0, 0.01)
"""The lengths of such a fault, in leases."""
_CUTS = {("reject", None): 4, ("drop", "replies"): 3, ("drop", "requests"): 2, ("drop", None): 1}
"""How a cut of the holder meets packets, and which of them, with weights. A request that was
dropped is sent again by TCP, whether its reply is dropped or not. One that was rejected is not."""
_LENGTHS = {
    # The client learns of it at once, and may retry within a tenth of a second.
    "reject": (_AT_ONCE, _AT_ONCE, _AT_ONCE, _AT_ONCE, _SHORT, _PAST),
    # Its request was carried out. What it does after its timeout is to be answered.
    "replies": (_SHORT, _SHORT, _PAST),
    # TCP sends it again. It is to arrive when the lease has expired.
    "requests": (_SHORT, _PAST, _PAST),
    "drop": (_SHORT, _PAST, _PAST),
}
"""The lengths of a cut that meets a request, by what it does to it."""
_BRIEF = 0.1
"""The length, in leases, of half of the crashes in a split, unless --restart asks for more."""
_OUTLAST = (0.5, 3.0)
"""Those of a fault of the holder's HTTP requests."""
_TRIES = 20


def draws(
    entries: Sequence[str], seed: int, at: Layout, missed: Callable[[], Collection[str]] = tuple
) -> Iterator[Trigger]:
    """Draw triggers without end. The same seed gives the same ones.

    `missed` returns the failpoints that clients turned out not to reach: none of them is drawn
    from then on.
    """
    asked = check(entries, at)
    points: dict[str, _Points] = {}
    for number in count(1):
        one = _turn(asked, seed, number)
        turn = points.setdefault(one.text, _Points(f"{seed}/aim/points/{one.text}"))
        away = missed()
        kept = tuple(point for point in at.failpoints if point not in away)
        there = dataclasses.replace(at, failpoints=kept)
        yield _at_other_points(_draw(asked, one, seed, number, there, turn), away, there)


def _draw(
    asked: Sequence[Asked], one: Asked, seed: int, number: int, at: Layout, points: _Points
) -> Trigger:
    """Draw the trigger with this number, of this entry."""
    random = Random(f"{seed}/aim/{number}")
    round_ = (number - 1) // len(asked)
    rest_s = random.uniform(0.1, 0.3) * at.ttl_s
    if round_ % _LONG == 2 and (long := _long(random, at, one, rest_s)) is not None:
        return long
    if random.random() < 0.7 and (trigger := _split(random, at, asked, one, rest_s)) is not None:
        return trigger
    request = _request(random, at, one, rest_s, points) if random.random() < _REQUESTS else None
    if request is not None:
        return request
    kind = random.choice(("hold", "hold", "hold", "edge", "edge", "edge", "free"))
    length_s = random.uniform(0.5, 2) * at.ttl_s
    if kind == "free":
        drawn, lasts_s = _own(random, at, one, length_s)
        if HOLDER not in drawn.targets:
            return Trigger("free", [], [drawn], 0.0, lasts_s, False, rest_s)
        until_grant = drawn.arguments.get("until") == pause.UNTIL
        return Trigger("point", [], [drawn], 0.0, lasts_s, until_grant, rest_s)
    share = 1 - _LEFT if kind == "edge" else random.uniform(0.05, 0.6)
    injection, lasts_s, until_grant = _injection(random, at, one, length_s, points)
    if HOLDER in injection.targets and injection.arguments.get("point"):
        kind, share = "point", 0.0
    return Trigger(kind, [], [injection], share, lasts_s, until_grant, rest_s)


def _at_other_points(trigger: Trigger, missed: Collection[str], at: Layout) -> Trigger:
    """Return the trigger; if it waits for a failpoint that clients do not reach (`missed`), for
    another one instead. Without another one the holder is hit wherever it is, and a pause lasts
    until another client holds the lock."""
    strike = [_elsewhere(one, trigger, missed, at) for one in trigger.strike]
    if strike == trigger.strike or all(one.arguments.get("point") for one in strike):
        return replace(trigger, strike=strike)
    return replace(trigger, strike=strike, until_grant=True, lasts_s=_until_s(at))


def _elsewhere(one: Injection, trigger: Trigger, missed: Collection[str], at: Layout) -> Injection:
    if one.arguments.get("point") not in missed:
        return one
    arguments = {k: v for k, v in one.arguments.items() if k not in ("point", "client")}
    meets = "client" in one.arguments
    if left := [
        point for point in at.failpoints if (point in BEFORE if meets else _OFTEN.get(point, 1))
    ]:
        kept = {k: v for k, v in one.arguments.items() if k == "client"}
        other = Random(f"{trigger.rest_s}").choice(left)
        return replace(one, arguments=arguments | kept | {"point": other})
    if one.family == "pause":
        arguments["until"] = pause.UNTIL
    return replace(one, arguments=arguments)


def _until_s(at: Layout) -> float:
    """Return how long a pause waits for another's grant: so long that a lock which is kept for as
    long as its holder lives shows it."""
    return 2 * at.ttl_s + max(2 * at.ttl_s, at.bound_s + 1)


class _Points:
    """The failpoints of an entry's triggers, in a new order each cycle, so that a short run meets
    all of them. Only a trigger that waits for a failpoint takes a turn."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._left: list[str] = []

    def next(self, points: Sequence[str], often: Mapping[str, int]) -> str:
        """Return the next of these failpoints. A point of weight 2 has two turns of a cycle."""
        self._left = [point for point in self._left if point in points]
        if not self._left:
            turns = [point for point in points for _ in range(often.get(point, 1))] or [*points]
            self._left = self._random.sample(turns, len(turns))
        return self._left.pop()


# One at which to pause or kill is mostly between two requests, where a check may be out of date. A
# client that is stopped before an acquire holds no lock yet.
_OFTEN = {"between-check-and-delete": 2, "between-requests": 2, "before-acquire": 0}


def _turn(asked: Sequence[Asked], seed: int, number: int) -> Asked:
    """Choose an entry in turn, in a new order each round, so that a short run has all of them. With
    weights it is drawn."""
    weights = [each.weight for each in asked]
    if len(set(weights)) > 1:
        (one,) = Random(f"{seed}/aim/entry/{number}").choices(asked, weights)
        return one
    turn, place = divmod(number - 1, len(asked))
    return Random(f"{seed}/aim/turn/{turn}").sample(list(asked), len(asked))[place]


def _split(
    random: Random, at: Layout, asked: Sequence[Asked], turn: Asked, rest_s: float
) -> Trigger | None:
    """Return two groups of clients and the servers that both need; None if no trigger is
    possible."""
    cuts = [one for one in asked if one.family == "partition" and not one.target]
    fatal = [one for one in asked if _forgets(FAMILIES[one.family]) and not one.target]
    independent = at.kind.independent and not (at.leads or at.replicated)
    if not (cuts and fatal and independent and len(at.servers) > 2 and len(at.clients) > 1):
        return None
    if turn not in (*cuts, *fatal):
        return None
    (one,) = [turn] if turn in fatal else random.choices(fatal, [each.weight for each in fatal])
    servers = random.sample(at.servers, len(at.servers))
    clients = random.sample(at.clients, len(at.clients))
    common = 2 * (len(servers) // 2 + 1) - len(servers)
    side = (len(servers) - common) // 2
    both, left, right = servers[:common], servers[common : common + side], servers[-side:]
    half = len(clients) // 2
    links = [[client, server] for client in clients[:half] for server in right]
    links += [[client, server] for client in clients[half:] for server in left]
    nodes = list(dict.fromkeys(node for link in links for node in link))
    cut = Injection("partition", nodes, {"links": links, "how": "drop"})
    strikes = [_forgetting(random, at, one, server) for server in both]
    if None in strikes:
        return None
    share = random.uniform(0.05, 0.4)
    found = [injection for injection in strikes if injection is not None]
    # A crashed server grants again what it forgot only if it is back while the lease still runs.
    lasts_s = 1.2 * at.ttl_s
    if one.family != "clock":
        lasts_s = max(at.restart_s, random.choice((_BRIEF, 1.2)) * at.ttl_s)
    return Trigger("split", [cut], found, share, lasts_s, True, rest_s)


def _request(
    random: Random, at: Layout, one: Asked, rest_s: float, turn: _Points
) -> Trigger | None:
    """Return a fault that meets a request of the holder; None if it cannot."""
    points = [point for point in at.failpoints if point in BEFORE]
    if not points or not FAMILIES[one.family].meets(one):
        return None
    injection, _, _ = _injection(random, at, one, at.ttl_s, turn)
    meant = HOLDER in injection.targets and not set(injection.targets) & set(at.stores)
    if not meant and not _hits_servers(injection, at):
        return None
    meets: dict[str, Any] = {"point": turn.next(points, {}), "client": HOLDER}
    if "share" in injection.arguments:
        meets["share"] = packet.HEAVY  # else the request is only late
    injection = replace(injection, arguments=injection.arguments | meets)
    # A library's timeout passes within a short one, and a retry may come after it.
    cut = injection.arguments.get("lost") or injection.arguments.get("how")
    lengths = _LENGTHS.get(str(cut), (_SHORT, _PAST))
    lasts_s = random.uniform(*random.choice(lengths)) * at.ttl_s
    return Trigger("request", [], [injection], 0.0, lasts_s, False, rest_s)


def _long(random: Random, at: Layout, one: Asked, rest_s: float) -> Trigger | None:
    """Return a fault of servers that outlasts a lease and the bound of liveness; None if the
    family's own draw hits no servers, or leaves them within reach."""
    injection, lasts_s = _own(random, at, one, 0.0)
    if not (_hits_servers(injection, at) and _takes_away(injection)):
        return None
    lasts_s = max(lasts_s, random.uniform(1.2, 2) * at.ttl_s + at.bound_s)
    return Trigger("hold", [], [injection], 0.05, lasts_s, False, rest_s)


def _takes_away(injection: Injection) -> bool:
    """Return whether a fault may keep its targets from answering, and not only slow them down or
    lose some of their messages: a long one of those shows no more than a short one."""
    family, at = FAMILIES[injection.family], (injection.targets, injection.arguments)
    return family.forgets or bool(family.links(*at)) or bool(family.stops(*at))


def _hits_servers(injection: Injection, at: Layout) -> bool:
    """Return whether a fault hits servers alone; a partition also has the nodes on the other side
    as targets."""
    shape = injection.arguments.get("shape")
    return shape in SERVERS if shape else set(injection.targets) <= set(at.servers)


def _forgets(family: Family) -> bool:
    return family.forgets and "servers" in family.strikes


def _forgetting(random: Random, at: Layout, asked: Asked, server: str) -> Injection | None:
    """Return a fault by which this server may end a grant early."""
    if asked.family == "clock" and asked.variant in ("", "jump"):
        return Injection("clock", [server], _ahead(random, at))
    aimed = Asked(asked.family, server, asked.variant, text=asked.text)
    for _ in range(_TRIES):
        drawn = FAMILIES[asked.family].draw(random, at, aimed)
        if len(drawn) == 1 and drawn[0].targets == [server]:
            return Injection(asked.family, drawn[0].targets, drawn[0].arguments)
    return None


def _injection(
    random: Random, at: Layout, asked: Asked, length_s: float, turn: _Points
) -> tuple[Injection, float, bool]:
    """Return an injection during a hold, its maximal duration, and whether another's grant ends
    it."""
    aimed = asked.target in ("", "client", "clients") and not asked.variant
    family = asked.family
    arguments: dict[str, Any]
    if asked.variant in ALL_FAILPOINTS and asked.target in ("", "client", HOLDER):
        return _at_point(random, at, family, asked.variant)
    if family in ("pause", "kill") and aimed and asked.target and random.random() > _HOLDERS:
        lasts_s = pause.past_its_lease_s(random, at) if family == "pause" else 0.5 * length_s
        return Injection(family, [random.choice(at.clients)], {}), lasts_s, False
    if family == "pause" and aimed and (asked.target or random.random() < 0.7):
        # Only the threads that renew its lease; or the holder, anywhere, or where its lock's code
        # checks before it acts.
        if at.renews and random.random() < 0.4:
            lasts_s = pause.past_its_lease_s(random, at)
            return Injection("pause", [HOLDER], {"threads": pause.RENEWAL}), lasts_s, False
        if at.failpoints and random.random() < 0.75:
            points = (*at.failpoints, *(("before-write",) if at.stores else ()))
            return _at_point(random, at, family, turn.next(points, _OFTEN))
        arguments = {"point": None, "until": pause.UNTIL}
        return Injection("pause", [HOLDER], arguments), _until_s(at), True
    if family == "kill" and aimed and (asked.target or random.random() < 0.4):
        own = at.failpoints and random.random() < 0.6
        arguments = {"point": turn.next(at.failpoints, _OFTEN)} if own else {}
        return Injection("kill", [HOLDER], arguments), 0.5 * length_s, False
    if family == "cancel" and not asked.variant and at.failpoints:
        point = turn.next(at.failpoints, _OFTEN) if random.random() < 0.75 else None
        return Injection(family, [HOLDER], {"point": point}), 0.1, False
    if family == "delay" and not asked.target and random.random() < 0.7:
        # Whether a lock fails shows at its servers, and whether its guard does at the store.
        to = random.choice(at.servers if random.random() < 0.75 or not at.stores else at.stores)
        return Injection("delay", [HOLDER, to], {"source": HOLDER, "to": to}), length_s, False
    if family == "partition" and aimed and (asked.target or random.random() < 0.7):
        count = random.choice((len(at.servers), len(at.servers) // 2 + 1))
        links = [[HOLDER, server] for server in random.sample(at.servers, count)]
        (how, lost), *_ = random.choices([*_CUTS], [*_CUTS.values()])
        arguments = {"links": links, "how": how} | ({"lost": lost} if lost else {})
        return (
            Injection("partition", [HOLDER, *(far for _, far in links)], arguments),
            length_s,
            False,
        )
    if family == "http" and asked.target in ("", "client", HOLDER):
        of_holder = Asked(family, HOLDER, asked.variant, text=asked.text)
        drawn = FAMILIES[family].draw(random, at, of_holder)[0]
        # The next leader comes some time after the lease, and it is its work that shows the harm.
        lasts_s = random.uniform(*_OUTLAST) * at.ttl_s
        return Injection(family, drawn.targets, drawn.arguments), lasts_s, False
    if family == "clock" and at.kind.lease_clock == "wall" and not (asked.target or asked.variant):
        some = random.sample(at.servers, len(at.servers) // 2 + 1)
        return Injection("clock", some, _ahead(random, at)), 1.2 * at.ttl_s, True
    if family == "packet" and not asked.target and random.random() < 0.5:
        drawn = FAMILIES[family].draw(random, at, asked)[0]
        return Injection("packet", [HOLDER], drawn.arguments), length_s, False
    injection, lasts_s = _own(random, at, asked, length_s)
    if family == "clock" and set(injection.targets) <= set(at.clients):
        # It must be granted the lock meanwhile.
        return injection, random.uniform(2, 5) * at.ttl_s, False
    return injection, lasts_s, _forgets(FAMILIES[family])


def _at_point(random: Random, at: Layout, family: str, point: str) -> tuple[Injection, float, bool]:
    """Return a fault at a failpoint. Half of the pauses end as soon as another client holds the
    lock: a request that is sent later may find its own lease over. Half of those at a reply end
    before the lease does: its client may count on a longer one than the servers gave."""
    arguments = {"point": point}
    if family == "pause" and point in REPLIES and random.random() < 0.5:
        lasts_s = random.uniform(*_SHORT) * at.ttl_s
        return Injection(family, [HOLDER], arguments), lasts_s, False
    if family == "pause" and random.random() < 0.5:
        arguments["until"] = pause.UNTIL
        return Injection(family, [HOLDER], arguments), _until_s(at), True
    return Injection(family, [HOLDER], arguments), pause.past_its_lease_s(random, at), False


def _ahead(random: Random, at: Layout) -> dict[str, Any]:
    """Return a jump of a wall clock that ends all leases by it, and soon none after it is set
    right."""
    offset_s = round(random.uniform(1.05, 1.6) * at.ttl_s, 3)
    return {"kind": "jump", "clocks": ["wall"], "offset_s": offset_s}


def _own(random: Random, at: Layout, asked: Asked, length_s: float) -> tuple[Injection, float]:
    """Draw it as the family does."""
    drawn: Drawn = FAMILIES[asked.family].draw(random, at, asked)[0]
    lasts_s = length_s if drawn.duration_s is None else drawn.duration_s
    return Injection(asked.family, drawn.targets, drawn.arguments), lasts_s
