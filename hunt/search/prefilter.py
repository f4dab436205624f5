"""A quick look at a run's record: which checkers could find a violation in it, and which cannot.

The checkers take some milliseconds for a history, and a run less than one. So a run is judged by
a checker only where this look leaves its verdict open. It may suspect a sound
run, and must not pass a broken one: tests/hunt/search/test_prefilter.py compares it with the
checkers on random runs, and a hunt judges every SAMPLE-th run in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencepost.checker.facts.hold_events import NOT_HELD
from fencepost.checker.history.history import NEMESIS
from fencepost.hunt.sim.record import Row
from fencepost.workloads.contract.lock import Failed

SAMPLE = 500
ALL = frozenset(
    ("lease_exclusion", "linearizable", "mutual_exclusion", "fencing", "ownership", "liveness",
     "resource", "store")
)  # fmt: skip
_SERVICE = frozenset(("lease_exclusion", "linearizable", "ownership"))
_LATE = frozenset(("mutual_exclusion", "linearizable"))
_BELIEF = frozenset(("mutual_exclusion", "resource"))
_TOKENS = frozenset(("fencing", "linearizable"))
_DATA = frozenset(("resource", "store"))


@dataclass(slots=True)
class _Hold:
    process: Any
    deadline: float
    token: int | None
    number: int
    ended: bool = False


def suspects(
    rows: list[Row],
    came_back: bool,
    bound_ns: int,
    fifo: bool,
    keeps_on: bool = False,
    refuses: bool = False,
) -> set[str]:
    """The checkers that could say False of this record. `fifo`: the lock promises an order;
    `keeps_on`: a hold goes on after a release that failed; `refuses`: the lock promises to refuse
    only what somebody has.

    Why so little is suspected of `linearizable`: where no grant was given while another's lease
    ran, there is an order that keeps every lease. Each grant is given when it is answered, each
    release happens when it is sent or once the lease is over, and what failed or was not answered
    did nothing. And `ownership` needs a hold that was gone before its time: another grant while its
    lease ran, or a refusal to its own holder.
    """
    found: set[str] = set()
    if not came_back:
        found |= {"liveness"}
    holds: list[_Hold] = []
    by_name: dict[Any, _Hold] = {}
    asked: dict[Any, int] = {}
    highest, granted_last, last_asked = None, 0, 0
    version, last_writer, last_token = 0, -1, None
    unsure = unheard = False
    for time, process, type, f, value, error, _node, _step in rows:
        if process == NEMESIS:
            continue
        if f == "acquire":
            if type == "invoke":
                asked[process] = time
                continue
            if type != "ok":
                if type == "info":
                    unheard = True
                elif refuses and not unheard:
                    since = asked[process]
                    if not holds or holds[-1].ended or holds[-1].deadline < since:
                        found.add("liveness")
                continue
            deadline = value["deadline"]
            until = float("inf") if deadline is None else deadline
            since = asked[process]
            for hold in holds:
                if not hold.ended:
                    found |= _BELIEF
                    if hold.deadline >= time:
                        found |= _SERVICE
            token = value["token"]
            if token is not None:
                if highest is not None and token <= highest:
                    found |= _TOKENS
                highest = token if highest is None else max(highest, token)
            if fifo and since < last_asked:
                found.add("liveness")
            last_asked = since
            if time - granted_last > bound_ns:
                found.add("liveness")
            granted_last = time
            hold = _Hold(process, until, token, len(holds))
            holds.append(hold)
            by_name[process, value["hold"]] = hold
            if until <= time:
                found |= _LATE
        elif f in ("release", "extend", "lost", "renewed"):
            name = value.get("hold")
            named = by_name.get((process, name))
            if named is None:
                continue
            if f == "release":
                if type != "fail":
                    named.ended = type != "invoke" or not keeps_on
                elif _refused(error) and time <= named.deadline:
                    found.add("ownership")
            elif f == "extend":
                if type == "ok":
                    if time >= named.deadline or len(holds) > named.number + 1:
                        found |= _SERVICE
                    if value["deadline"] is not None:
                        named.deadline = value["deadline"]
                elif type == "info" and time <= named.deadline:
                    found |= _SERVICE
                elif type == "fail" and _refused(error) and time <= named.deadline:
                    found.add("ownership")
            elif f == "renewed":
                if time >= named.deadline:
                    found |= _SERVICE
                named.deadline = value["deadline"]
            else:
                if time <= named.deadline:
                    found |= _SERVICE
                named.ended = True
        elif f == "write":
            if type == "ok":
                named = by_name.get((process, value["hold"]))
                if value["stored"] != version + 1 or value["version"] != version or unsure:
                    found |= _DATA
                version = value["stored"]
                if named is not None:
                    if named.number < last_writer:
                        found |= {"resource", "fencing"}
                    last_writer = max(last_writer, named.number)
                    if named.token is not None:
                        if last_token is not None and named.token < last_token:
                            found |= {"resource", "fencing"}
                        last_token = max(named.token, last_token or named.token)
            elif type == "info":
                unsure = True
        elif f == "read" and type == "ok" and value["version"] != version:
            # Higher where a write that nobody answered has arrived meanwhile: somebody may have
            # died in it, and then nothing more is said of it.
            found |= _DATA
    return found


def _refused(error: Failed | None) -> bool:
    """Whether a holder was told that its hold is gone."""
    return error is not None and error.kind == NOT_HELD
