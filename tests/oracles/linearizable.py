"""`linearizable`: try every order of the lock's ops, with every expiry at its earliest place.

The lease-mutex follows the letter of docs/lincheck.md: an op takes effect at one moment of its
interval, one of unknown outcome at any later moment or never; a grant may expire by itself from the
end of the lease that its client may count on.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.drawn import MS, Drawing, in_order
from tests.oracles.exclusion import draw as drawn_with_cuts
from tests.oracles.holds import FOREVER, Held, bound, by_harness, completion, holds, second_grant
from tests.oracles.ownership_drawn import misname


@dataclass(frozen=True)
class _Act:
    """An op's effect, between two positions of the history (`last` None: at any time, or never).

    `whose`: the grant; `over`: from when on (ns) the grant may have expired after this act. `told`:
    the positions of its two events in the history.
    """

    process: int | str
    told: tuple[int, int]

    f: str
    first: int
    last: int | None
    whose: Any
    token: int | str | None
    over: float


def draw(random: Random) -> tuple[list[Op], dict[str, Any]]:
    if random.random() < 0.1:
        ops, test = drawn_with_cuts(random)
        if all(op.value.get("mode") != "shared" for op in ops):
            return ops, test
    if random.random() < 0.1:  # chains of second grants, which are rare among three clients
        drawing = Drawing(random, shared=0.0, most=5, locks=1, clients=2, span=20)
        drawing.test["promises"] = {}
        return drawing.ops, drawing.test
    shared = random.choice((0.05, 0.2)) if random.random() < 0.2 else 0.0
    drawing = Drawing(random, shared=shared, most=3, locks=2)
    if random.random() < 0.1:
        misname(drawing.ops, random)
    if random.random() < 0.15:
        return _refusing(random), drawing.test
    return drawing.ops, drawing.test


def _refusing(random: Random) -> list[Op]:
    """Draw clients whose releases are refused, mostly, and mostly within their leases."""
    drawing = Drawing(random, shared=0.0, locks=1)
    drawing.ops = []
    extends, works, now = random.random() < 0.5, random.choice((0.05, 0.2, 0.4)), 0
    turns = random.randint(2, 6)
    # Refused faster than others are answered ok, mostly.
    fast = random.random() < 0.3
    if fast:
        extends, works, turns = False, 0.55, random.randint(6, 9)
    for number in range(turns):
        process = random.randrange(2)
        asked = now + random.randrange(3)
        value = {"lock": "l0", "ttl": random.choice((4, 9)) * MS}
        deadline = None if random.random() < 0.1 else asked * MS + value["ttl"]
        got = value | {"hold": f"h{number}", "token": None, "deadline": deadline}
        node = f"client-{process}"
        drawing.op(asked, process, "invoke", "acquire", value, None, node)
        drawing.op(asked, process, "ok", "acquire", got, None, node)
        if random.random() < 0.1:
            lost = {"lock": "l0", "hold": f"h{number}"}
            drawing.op(asked + 1, process, "info", "lost", lost, ["lost", "-"], node)
        now = asked + random.randrange(1, 6)
        for _ in range(random.choice((0, 1, 1, 2)) if extends else 0):
            now = _refuse(drawing, now, process, number, "extend", works, fast)
        for _ in range(random.choice((1, 1, 1, 2))):
            more = 0.6 if extends else works
            now = _refuse(drawing, now, process, number, "release", more, fast)
    if random.random() < 0.3:
        at = random.randrange(now + 1)
        until = random.choice((None, at + random.randrange(4)))
        drawing.fault("pause", at, at, ["s1"], until=until)
    if random.random() < 0.2:
        other = {"lock": "l0", "hold": random.choice(("h0", "h1", "strange"))}
        at = random.randrange(now + 1)
        drawing.op(at, 7, "invoke", "release", other, None, "client-7")
        kind = random.choice(("fail", "info"))
        drawing.op(at + 1, 7, kind, "release", other, ["not-held", "-"], "client-7")
    return in_order(drawing.ops)


def _refuse(
    drawing: Drawing, now: int, process: int, number: int, f: str, works: float, fast: bool
) -> int:
    """Draw a request about a hold that is refused, mostly; return when it was answered."""
    random, node = drawing.random, f"client-{process}"
    value: dict[str, Any] = {"lock": "l0", "hold": f"h{number}"}
    if f == "extend":
        value["ttl"] = random.choice((4, 9)) * MS
    ok = random.random() < works
    done = now + (ok == (random.random() < 0.9) if fast else random.randrange(2))
    drawing.op(now, process, "invoke", f, value, None, node)
    if ok:
        more = {"deadline": now * MS + value["ttl"]} if f == "extend" else {}
        drawing.op(done, process, "ok", f, value | more, None, node)
    else:
        kind = random.choice(("not-held",) * 9 + ("unreachable",))
        drawing.op(done, process, "fail", f, value, [kind, "-"], node)
    return done


def verdict(ops: list[Op], test: dict[str, Any]) -> set[bool | str]:
    found = holds(ops, test)
    asked = [op for op in ops if op.f == "acquire" and op.type == "invoke"]
    shared = {str(op.value.get("lock", "")) for op in asked if op.value.get("mode") == "shared"}
    if all(held.lock in shared for held in found):
        return {"unknown"}
    clocks = any(clock.get("bound_ns") for clock in test.get("clocks", {}).values())
    moments: dict[int, int] = {}
    for op in ops:
        moved = bound(test, op.node) if op.process != "nemesis" else 0
        moments[op.index] = op.time + (-moved if op.type == "invoke" else moved)
    vague = clocks or _tied(ops)
    order = sorted(
        moments,
        key=lambda index: (moments[index], ops[index].type != "invoke", index) if vague else index,
    )
    place = {index: number for number, index in enumerate(order)}
    times = [moments[index] for index in order]
    by_lock: dict[str, list[_Act]] = {}
    for op in ops:
        if op.type == "invoke" and op.f in ("acquire", "extend", "release"):
            act = _act(ops, test, op, found, place)
            lock = str(op.value.get("lock", ""))
            if act is not None and lock not in shared:
                by_lock.setdefault(lock, []).append(act)
    loose = all(_possible(acts, times, in_turn=False) for acts in by_lock.values())
    strict = all(_possible(acts, times, in_turn=True) for acts in by_lock.values())
    kinds = [(lock, f) for lock in by_lock for f in ("release", "extend") if lock not in shared]
    if any(_gives_up(ops, test, found, *kind) for kind in kinds):
        return {False}
    return {"unknown" if fits and shared else fits for fits in (loose, strict)}


def _gives_up(ops: list[Op], test: dict[str, Any], found: list[Held], lock: str, f: str) -> bool:
    """Return whether three or more holds of a lock were refused their first request (`f`) in calm,
    within their leases, without another client's release meanwhile, and more than had one answered
    ok; or three or more in less time than at least half of those took, of three or more, that were
    answered ok in calm. An extend is none once its holder has sent a release."""
    about = [op for op in ops if op.f in ("release", "extend") and op.type == "invoke"]
    about = [op for op in about if str(op.value.get("lock", "")) == lock]
    answers = {op.index: completion(ops, op) for op in about}
    oks = [op for op in about if op.f == f and (done := answers[op.index]) and done.type == "ok"]
    answered = [(op.time, done.time) for op in oks if (done := answers[op.index])]
    calm = [
        over - since
        for since, over in answered
        if not any(_touches(ops, op, since, over) for op in ops)
    ]
    refused = quick = 0
    for one in found:
        own = [op for op in one.said if op.f in ("release", "extend") and op.type == "invoke"]
        released = [place for place, op in enumerate(own) if op.f == "release"]
        own = [op for op in own[: released[0] + 1 if released else None] if op.f == f]
        done = answers.get(own[0].index) if one.lock == lock and own else None
        if done is None or done.type != "fail" or done.error is None or done.error[0] != "not-held":
            continue
        if any(one is inner for inner in _again(found)):
            continue
        gone = [op.time for op in one.said if op.f == "lost"]
        if test.get("lock", {}).get("ends_with") == "connection":
            gone.append(one.told)
        over = min([one.early, one.other, *gone])
        leases = one.leases
        if leases[-1][1] == FOREVER and one.asked.value.get("ttl") is not None:
            leases = [(since, until) for since, until in leases if until < FOREVER]
            if one.leases[0][1] == FOREVER:
                leases.append((one.grant.time, one.asked.time + one.asked.value["ttl"]))
        if not any(s <= own[0].time and done.time < min(u, over) for s, u in leases):
            continue
        if any(_touches(ops, op, one.asked.time, done.time) for op in ops):
            continue
        near = [op for op in about if op.f == "release" and op.process != one.process]
        if any(_met(test, op, answers[op.index], one, done) for op in near):
            continue
        refused += 1
        took = done.time - own[0].time
        slower = sum(lasted > took for lasted in calm)
        quick += len(calm) >= 3 and 2 * slower >= len(calm)
    return refused >= 3 and (refused > len(oks) or quick >= 3)


def _touches(ops: list[Op], begun: Op, since: int, until: int) -> bool:
    """Return whether this is the start of a fault that was on at any time between these two."""
    if begun.process != "nemesis" or begun.value["phase"] == "end" or begun.type != "invoke":
        return False
    mine = [op for op in ops if op.value.get("fault") == begun.value["fault"]]
    ends = [op.time for op in mine if op.value["phase"] == "end"]
    return begun.time <= until and max(ends, default=until) >= since


def _met(test: dict[str, Any], op: Op, answer: Op | None, one: Held, done: Op) -> bool:
    apart = bound(test, op.node) + bound(test, one.grant.node)
    apart = 0 if op.node == one.grant.node else apart
    over = answer is not None and answer.type != "info" and answer.time + apart < one.asked.time
    return op.time <= done.time + apart and not over


def _tied(ops: list[Op]) -> bool:
    """Return whether an answer and a later invocation of another process have one stamp."""
    return any(
        one.time == other.time and one.process != other.process
        for place, one in enumerate(ops)
        for other in ops[place:]
        if one.type != "invoke" and other.type == "invoke"
    )


def _act(
    ops: list[Op], test: dict[str, Any], begun: Op, found: list[Held], place: dict[int, int]
) -> _Act | None:
    done = completion(ops, begun)
    type = done.type if done is not None and not by_harness(done) else "info"
    if type == "fail" and not (begun.f == "release" and _had_ended(test, done)):
        return None
    if _nested(found, begun, done) or _released_before(ops, begun, _again(found)):
        return None
    if begun.f == "release" and _is_another_s(found, begun):
        return None
    last = None if type == "info" or done is None else place[_end(ops, begun, done)]
    name = (done.value if done is not None and begun.f == "acquire" else begun.value).get("hold")
    whose = (begun.process, name if type != "info" or begun.f != "acquire" else None)
    me = (begun.process, (begun.index, done.index if done is not None else len(ops)))
    if begun.f == "release":
        f = "ended" if type == "fail" else "release"
        return _Act(*me, f, place[begun.index], last, whose, None, FOREVER)
    token: int | str | None = "unseen" if type == "info" else None
    if type == "ok" and done is not None:
        token = done.value.get("token")
    over = _over(ops, test, begun, done if type == "ok" else None, found)
    moved = bound(test, begun.node)
    return _Act(*me, begun.f, place[begun.index], last, whose, token, over - moved)


def _is_another_s(found: list[Held], begun: Op) -> bool:
    """Return whether a release names the hold of another process, and none of its own."""
    name = begun.value.get("hold")
    named = [one for one in found if name is not None and one.grant.value.get("hold") == name]
    return bool(named) and all(one.process != begun.process for one in named)


def _had_ended(test: dict[str, Any], done: Op | None) -> bool:
    """Return whether this hold has ended once its release has failed like this."""
    assert done is not None and done.error is not None
    kind = done.error[0]
    return kind == "not-held" or (test["failed_release"] == "ended" and kind != "unreachable")


def _firsts(found: list[Held], one: Held) -> list[Held]:
    """Return the holds, neither granted to a holder, that the process had when it asked for one."""
    return [other for other in found if second_grant(other, one)]


def _again(found: list[Held]) -> list[Held]:
    """Return the holds that a process was granted while it had another, which it was not."""
    again: list[Held] = []
    for one in found:
        # Of its process, the last one that is no second grant decides.
        mine = [
            other
            for other in found
            if other.process == one.process
            and other.lock == one.lock
            and other.grant.index < one.grant.index
            and not any(other is inner for inner in again)
        ]
        if mine and any(mine[-1] is first for first in _firsts(found, one)):
            again.append(one)
    return again


def _nested(found: list[Held], begun: Op, done: Op | None) -> bool:
    for one in _again(found):
        name = one.grant.value.get("hold")
        if begun is one.asked:
            return True
        if name is not None and (begun.process, begun.value.get("hold")) == (one.process, name):
            return True
    return False


def _released_before(ops: list[Op], begun: Op, again: list[Held]) -> bool:
    """Return whether this is the release of a hold that was released ok before. A hold without a
    name is the process' latest that is no second grant."""
    if begun.f != "release":
        return False
    lock, name = str(begun.value.get("lock", "")), begun.value.get("hold")
    for op in reversed(ops[: begun.index]):
        if op.process != begun.process or str(op.value.get("lock", "")) != lock:
            continue
        if name is None and op.f == "acquire" and op.type == "ok":
            if any(op is one.grant for one in again):
                continue
            return False
        if op.f == "release" and op.type == "ok" and op.value.get("hold") == name:
            return True
    return False


def _end(ops: list[Op], begun: Op, done: Op) -> int:
    """Return by when a grant must have been given: before the reported end of its own wait."""
    if begun.f == "acquire" and done.type == "ok":
        for op in ops[begun.index : done.index]:
            told = op.process == begun.process and op.f == "lost" and op.value.get("hold") is None
            again = op.error is not None and list(op.error)[:1] == ["requeued"]
            if told and not again:
                return op.index
    return done.index


def _over(
    ops: list[Op], test: dict[str, Any], begun: Op, done: Op | None, found: list[Held]
) -> float:
    ttl = begun.value.get("ttl")
    if done is None:
        return FOREVER if ttl is None else begun.time + ttl
    held = None
    for one in found:
        same = one.grant.index == done.index
        if begun.f == "extend":
            name = begun.value.get("hold")
            mine = one.process == begun.process and one.grant.index < begun.index
            same = mine and one.grant.value.get("hold") == name
            same = same and (name is not None or one.lock == str(begun.value.get("lock", "")))
        held = one if same else held
    early = FOREVER
    if held is not None:
        gone = [op.time for op in held.said if op.f == "lost"]
        if test.get("lock", {}).get("ends_with") == "connection":
            gone.append(held.told)
        early = min([held.early, held.other, *gone])
    if held is None:
        return FOREVER if ttl is None else begun.time + ttl
    deadline = done.value.get("deadline")
    if deadline is None:
        over: float = begun.time
    else:
        over, renewed = deadline, False
        for op in ops:
            ours = op.f == "renewed" and op.process == begun.process
            ours = ours and op.value.get("hold") == done.value.get("hold")
            after = begun.f == "acquire" or op.time >= done.time
            if ours and after and op.value["deadline"] is not None and op.time <= over:
                over, renewed = op.value["deadline"], True
        if not renewed and test.get("lock", {}).get("ends_with", "lease") == "lease":
            over = min(over, begun.time + ttl)
    return max(begun.time, min(over, early))


def _possible(acts: list[_Act], times: list[int], in_turn: bool) -> bool:
    """Return whether the acts have an order; `times` of all positions, which rise.

    Moved stamps make ops of one process overlap. `in_turn` still requires the order in which the
    process did them, which is certain; the checker may ignore it.
    """
    seen: set[Any] = set()
    # An expiry shows only at an op's own event.
    events = sorted({a.first for a in acts} | {a.last for a in acts if a.last is not None})
    earlier = [_earlier(acts, n) for n in range(len(acts))]
    todo = [(0, 0, None, FOREVER, None, frozenset[Any]())]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        done, now, holder, over, token, expired = state
        left = [n for n in range(len(acts)) if not done >> n & 1]
        if all(acts[n].last is None for n in left):
            return True
        # Positions only rise: an act whose last one has passed can never be done.
        if any(acts[n].last is not None and acts[n].last < max(now, acts[n].first) for n in left):
            continue
        if holder is not None and over != FOREVER:
            later = [place for place in events if times[place] >= over]
            if later:
                moved = max(now, later[0])
                todo.append((done, moved, None, FOREVER, token, expired | {holder}))
        for n in left:
            act = acts[n]
            if in_turn and any(not done >> m & 1 for m in earlier[n]):
                continue
            at = max(now, act.first)
            after = _step(act, holder, over, token, expired)
            if after is not None:
                todo.append((done | 1 << n, at, *after))
    return False


def _earlier(acts: list[_Act], n: int) -> list[int]:
    """Return the acts that the same process had completed before."""
    me = acts[n]
    return [
        m
        for m, act in enumerate(acts)
        if act.process == me.process and act.last is not None and act.told[1] < me.told[0]
    ]


def _step(act: _Act, holder: Any, over: float, token: Any, expired: frozenset[Any]) -> Any:
    """Return the state after this act, or None if the act is impossible."""
    if act.f == "acquire":
        if holder is not None:
            return None
        if isinstance(act.token, int):
            if token is not None and act.token <= token:
                return None
            return act.whose, act.over, act.token, expired
        raised = token + 1 if act.token == "unseen" and token is not None else token
        return act.whose, act.over, raised, expired
    if act.f == "extend":
        return (holder, act.over, token, expired) if holder == act.whose else None
    if holder == act.whose:
        return None, FOREVER, token, expired
    if act.f == "ended" or act.whose in expired:
        return holder, over, token, expired - {act.whose}
    return None
