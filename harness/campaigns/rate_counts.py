"""Counts the events of each run that a rate reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from fencepost.checker.facts.faults import faults
from fencepost.checker.history.accesses import Access, Key, accesses
from fencepost.checker.history.history import History
from fencepost.harness.campaigns.tally import tally
from fencepost.harness.judge.judge import Outcome
from fencepost.report import stored

Counts = Mapping[str, tuple[int, int]]
"""By name of the count: how often it occurred, out of how many."""


def counts(outcome: Outcome, what: str) -> Counts:
    """Return the counts of a judged run: `what` as in the rate's bundle.

    `violations`: holds that broke each promise, of all holds (tally.py). `lost`: acknowledged
    updates that are lost, of all of them; nothing if no client read the resource after the faults,
    so that none could be missed.
    """
    if what == "violations":
        row = tally(outcome)
        return {name: (count, row["holds"]) for name, count in row["violations"].items()}
    run = stored.load(outcome.folder, results=outcome.results)
    if not read_after_faults(run.history):
        return {}
    end_s = float(run.test.get("ready_s") or 0.0) + float(run.test["time_s"])
    return {"updates": lost_updates(run.history, int(end_s * 1e9))}


def read_after_faults(history: History) -> bool:
    """Return whether a read that began after the last fault was answered."""
    over = max((fault.end or math.inf for fault in faults(history)), default=-math.inf)
    return any(
        one.is_read and one.type == "ok" and one.call.begin.time > over
        for _, found in accesses(history)
        for one in found
    )


def lost_updates(history: History, end_ns: float = math.inf) -> tuple[int, int]:
    """Return how many updates that were acknowledged by `end_ns` are lost, and how many there were.

    Later ones are made in short holds and without faults, until every client has stopped: they
    belong to no published setting, and their number depends on how busy the machine is.

    An update is a write on top of the value that its writer had read. The final value consists of
    the last write, the write that it was based on, and so on. This is like a set to which each
    update adds an element, which is how Jepsen counts (etcd 3.4.3, 2020). An acknowledged update
    outside that chain is lost.

    Values identify writes, and versions do not: after a failover loses writes, the server assigns
    their versions again.
    """
    lost = acknowledged = 0
    for _, found in accesses(history):
        ended = [one for one in found if one.type == "ok" and one.call.end is not None]
        mine = {one.key for one in ended if not one.is_read and _end(one) <= end_ns}
        acknowledged += len(mine)
        lost += len(mine - _kept(found, ended))
    return lost, acknowledged


def _kept(found: Iterable[Access], ended: list[Access]) -> set[Key]:
    """Return the values in the chain of writes that ends with the final value."""
    built_on: dict[Key, Key] = {}
    read: dict[int | str, Key] = {}
    for one in found:
        process = one.call.begin.process
        if not one.is_read and process in read:
            built_on.setdefault(one.asked, read[process])
        elif one.is_read and one.type == "ok":
            read[process] = one.key
    kept: set[Key] = set()
    value = _last(ended)
    while value is not None and value not in kept:
        kept.add(value)
        value = built_on.get(value)
    return kept


def _last(ended: list[Access]) -> Key | None:
    """Return the final value: of the ops that may have been last, that of the highest version."""
    if not ended:
        return None
    last = max(ended, key=_end)
    late = [one for one in ended if _end(one) >= last.call.begin.time]
    return max(late, key=lambda one: (one.version or 0, _end(one))).key


def _end(one: Access) -> int:
    assert one.call.end is not None
    return one.call.end.time
