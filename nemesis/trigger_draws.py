"""Draws triggered faults (triggers.py) from the seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from random import Random
from typing import Any

from msgspec.structs import replace

from fencepost.nemesis.aiming import OFTEN, USUAL, Points, until_s
from fencepost.nemesis.failpoints import BEFORE
from fencepost.nemesis.families import FAMILIES, check
from fencepost.nemesis.family import Family
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import HOLDER, Drawn, Layout
from fencepost.nemesis.triggers import Injection, Trigger
from fencepost.nemesis.turns import Dealing, deal, dealing

_LEFT = 0.05
"""The part of a lease that is left at its edge."""
_LONG = 5
"""One of five faults of an entry, the third first, lasts longer than a lease and the bound of
liveness, if it may keep servers from answering. Only such a fault shows whether the lock is granted
while these servers are away, but it takes the time of three others. One that takes more than half
of the run is left out: it would end with the run, and show nothing."""
_REQUESTS = 0.7
"""How often a fault that can meet a request is aimed at one."""
_BRIEF = 0.1
"""The length, in leases, of half of the crashes in a split, unless --restart asks for more."""
_TRIES = 20


def draws(
    entries: Sequence[str], seed: int, at: Layout, missed: Callable[[], Collection[str]] = tuple
) -> Iterator[Trigger]:
    """Draw triggers without end. The same seed gives the same ones.

    `missed` returns the failpoints that clients turned out not to reach: none of them is drawn
    from then on.
    """
    asked = check(entries, at)
    points: dict[str, Points] = {}
    taken: dict[str, int] = {}
    for number in count(1):
        random = dealing(f"{seed}/aim/{number}", f"{seed}/aim/turns", taken)
        # Each entry comes once in a round, or as often as its weight demands.
        one = deal(random, "entry", asked, [each.weight for each in asked])
        random.entry = one.text
        turn = points.setdefault(one.text, Points(f"{seed}/aim/points/{one.text}"))
        away = missed()
        kept = tuple(point for point in at.failpoints if point not in away)
        there = dataclasses.replace(at, failpoints=kept)
        trigger = _draw(random, asked, one, (number - 1) // len(asked), there, turn)
        taken = random.taken
        yield _at_other_points(trigger, away, there)


def _draw(
    random: Dealing, asked: Sequence[Asked], one: Asked, round_: int, at: Layout, points: Points
) -> Trigger:
    """Draw a trigger of this entry."""
    rest_s = random.uniform(0.1, 0.3) * at.ttl_s
    found = None
    if round_ % _LONG == 2:
        found = random.attempt(lambda: _long(random, at, one, rest_s))
    if found is None and random.random() < 0.7:
        found = random.attempt(lambda: _split(random, at, asked, one, rest_s))
    if found is None and random.random() < _REQUESTS:
        found = random.attempt(lambda: _request(random, at, one, rest_s, points))
    if found is not None:
        return found
    kind = deal(random, "trigger", ("hold", "hold", "hold", "edge", "edge", "edge", "free"))
    length_s = random.uniform(*USUAL) * at.ttl_s
    if kind == "free":
        drawn, lasts_s = _own(random, at, one, length_s)
        if HOLDER not in drawn.targets:
            return Trigger("free", [], [drawn], 0.0, lasts_s, False, rest_s)
        until = FAMILIES[one.family].aim.until_grant
        until_grant = bool(until) and until.items() <= drawn.arguments.items()
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
    return replace(trigger, strike=strike, until_grant=True, lasts_s=until_s(at))


def _elsewhere(one: Injection, trigger: Trigger, missed: Collection[str], at: Layout) -> Injection:
    if one.arguments.get("point") not in missed:
        return one
    arguments = {k: v for k, v in one.arguments.items() if k not in ("point", "client")}
    meets = "client" in one.arguments
    if left := [
        point for point in at.failpoints if (point in BEFORE if meets else OFTEN.get(point, 1))
    ]:
        kept = {k: v for k, v in one.arguments.items() if k == "client"}
        other = Random(f"{trigger.rest_s}").choice(left)
        return replace(one, arguments=arguments | kept | {"point": other})
    return replace(one, arguments=arguments | FAMILIES[one.family].aim.until_grant)


def _split(
    random: Random, at: Layout, asked: Sequence[Asked], turn: Asked, rest_s: float
) -> Trigger | None:
    """Return two groups of clients and the servers that both need; None if no trigger is
    possible."""
    cuts = [one for one in asked if FAMILIES[one.family].aim.cut and not one.target]
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
    separate = FAMILIES[cuts[0].family].aim.cut
    assert separate is not None
    cut = Injection(cuts[0].family, nodes, separate(links))
    strikes = [_forgetting(random, at, one, server) for server in both]
    if None in strikes:
        return None
    share = random.uniform(0.05, 0.4)
    found = [injection for injection in strikes if injection is not None]
    lasts_s = 1.2 * at.ttl_s
    if any(FAMILIES[each.family].impairs(each.targets, each.arguments) for each in found):
        # A server that was away grants again what it forgot only if it is back while the lease
        # still runs.
        lasts_s = max(at.restart_s, random.choice((_BRIEF, 1.2)) * at.ttl_s)
    return Trigger("split", [cut], found, share, lasts_s, True, rest_s)


def _request(random: Random, at: Layout, one: Asked, rest_s: float, turn: Points) -> Trigger | None:
    """Return a fault that meets a request of the holder; None if it cannot."""
    points = [point for point in at.failpoints if point in BEFORE]
    if not points or not FAMILIES[one.family].meets(one):
        return None
    injection, _, _ = _injection(random, at, one, at.ttl_s, turn)
    meant = HOLDER in injection.targets and not set(injection.targets) & set(at.stores)
    if not meant and not _hits_servers(injection, at):
        return None
    meets: dict[str, Any] = {"point": turn.next(points, {}), "client": HOLDER}
    # A library's timeout passes within a short one, and a retry may come after it.
    changed, lengths = FAMILIES[one.family].aim.request(injection.arguments)
    injection = replace(injection, arguments=injection.arguments | meets | changed)
    lasts_s = random.uniform(*random.choice(lengths)) * at.ttl_s
    return Trigger("request", [], [injection], 0.0, lasts_s, False, rest_s)


def _long(random: Random, at: Layout, one: Asked, rest_s: float) -> Trigger | None:
    """Return a fault of servers that outlasts a lease and the bound of liveness; None if the
    family's own draw hits no servers, or leaves them within reach."""
    injection, lasts_s = _own(random, at, one, 0.0)
    if not (_hits_servers(injection, at) and _takes_away(injection)):
        return None
    lasts_s = max(lasts_s, random.uniform(1.2, 2) * at.ttl_s + at.bound_s)
    if lasts_s > at.time_s / 2:
        return None
    return Trigger("hold", [], [injection], 0.05, lasts_s, False, rest_s)


def _takes_away(injection: Injection) -> bool:
    """Return whether a fault may keep its targets from answering, and not only slow them down or
    lose some of their messages: a long one of those shows no more than a short one."""
    family, at = FAMILIES[injection.family], (injection.targets, injection.arguments)
    return family.forgets or bool(family.links(*at)) or bool(family.stops(*at))


def _hits_servers(injection: Injection, at: Layout) -> bool:
    aim = FAMILIES[injection.family].aim
    return aim.servers_alone(injection.targets, injection.arguments, at)


def _forgets(family: Family) -> bool:
    return family.forgets and "servers" in family.strikes


def _forgetting(random: Random, at: Layout, asked: Asked, server: str) -> Injection | None:
    """Return a fault by which this server may end a grant early."""
    if (found := FAMILIES[asked.family].aim.forget(random, at, asked, server)) is not None:
        return Injection(asked.family, found.targets, found.arguments)
    aimed = Asked(asked.family, server, asked.variant, text=asked.text)
    for _ in range(_TRIES):
        drawn = FAMILIES[asked.family].draw(random, at, aimed)
        if len(drawn) == 1 and drawn[0].targets == [server]:
            return Injection(asked.family, drawn[0].targets, drawn[0].arguments)
    return None


def _injection(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> tuple[Injection, float, bool]:
    """Return an injection during a hold, its maximal duration, and whether another's grant ends
    it."""
    family = FAMILIES[asked.family]
    aimed = family.aim.draw(random, at, asked, length_s, points)
    if aimed is not None:
        injection = Injection(asked.family, aimed.targets, aimed.arguments)
        return injection, aimed.lasts_s, aimed.until_grant
    injection, lasts_s = _own(random, at, asked, length_s)
    return injection, lasts_s, _forgets(family)


def _own(random: Random, at: Layout, asked: Asked, length_s: float) -> tuple[Injection, float]:
    """Draw it as the family does."""
    drawn: Drawn = FAMILIES[asked.family].draw(random, at, asked)[0]
    lasts_s = length_s if drawn.duration_s is None else drawn.duration_s
    return Injection(asked.family, drawn.targets, drawn.arguments), lasts_s
