"""`linearizable`: does the history of acquire, extend and release fit the lease-mutex model?

The strictest question to the lock service, and the only one that also uses what failed and what
never returned: lincheck looks for one order of all ops, each within its interval, in which no
grant is given while another may not have expired yet, and each token exceeds those before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from checker.faults import during, faults
from checker.history import NEMESIS, History, Op
from checker.holds import seconds
from checker.lincheck import Evidence, named
from checker.lincheck.budget import Budget
from checker.lincheck.evidence import described
from checker.lincheck.operation import Operation
from checker.lincheck.verdict import check_numbered
from checker.verdict import Verdict

_OPS = ("acquire", "extend", "release")
_TIME_LIMIT_S = 60.0
_EVIDENCE_S = 5.0


def linearizable(history: History, test: Mapping[str, Any]) -> Verdict:
    """The lock's ops linearize against lease-mutex, each lock for itself."""
    if not any(op.f == "acquire" and op.type == "ok" for op in history.clients()):
        return Verdict("unknown", "The lock was never granted: nothing was tested.")
    failed = str(test.get("failed_release", "ended"))
    model = named("lease-mutex", failed_release=failed)
    found = check_numbered(_events(history), model, Budget.starting_now(_TIME_LIMIT_S, None))
    details = {"model": "lease-mutex", "operations": found.operations, "failed_release": failed}
    if found.valid is True:
        words = f"{found.operations} ops of the lock fit one order in which every lease is kept."
        return Verdict(True, words, [], details)
    if found.valid == "unknown":
        return Verdict("unknown", f"The search did not end: {found.reason}.", [], details)
    return _invalid(history, found.evidence(_EVIDENCE_S), details, found.failed)


def _invalid(
    history: History, evidence: Evidence, details: dict[str, Any], found: Operation | None
) -> Verdict:
    failed = evidence.failed or found
    if failed is None:
        return Verdict(False, "No order of the lock's ops keeps every lease.", [], details)
    op = history.ops[failed.line]
    why = next((b.why for p in evidence.partials for b in p.blocked if b.why), None)
    what = (
        f"{op.node or 'a client'} (process {op.process}): {described(failed.action)}, invoked at "
        f"{seconds(op.time)}, fits nowhere in any order of the lock's ops that keeps every lease"
        f"{f': {why}' if why else ''}.{during(faults(history), op.time, failed.ended or op.time)}"
    )
    small = evidence.small.operations if evidence.small else (failed,)
    row = {"what": what, "time_ns": op.time, "ops": sorted(part.line for part in small)}
    return Verdict(False, what, [row], details)


def _events(history: History) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lock's ops and their indices, as lincheck reads them.

    All are read before the first is handed on: a lease may turn out to be shorter than asked.
    """
    return iter(list(_adjusted(history)))


def _adjusted(history: History) -> Iterator[tuple[int, dict[str, Any]]]:
    open_ops: dict[int | str, dict[str, Any]] = {}
    early, killed = _granted_early(history), _killed(history)
    renewed: dict[Any, list[Op]] = {}
    for op in history.clients():
        if op.f == "renewed":
            renewed.setdefault(op.value.get("hold"), []).append(op)
    for op in history:
        if op.index in early:
            # Its end, brought forward; where it stands itself, nothing is left of it.
            if early[op.index] is None:
                continue
            op = early[op.index] or op
        elif op.process == NEMESIS or op.f not in _OPS:
            continue
        event = {
            "process": op.process,
            "type": op.type,
            "f": op.f,
            "value": dict(op.value),
            "time": op.time,
        }
        if op.type == "invoke":
            open_ops[op.process] = event
        elif op.process in open_ops:
            begin = open_ops.pop(op.process)
            if op.type == "ok" and op.f != "release":
                lasting = renewed.get(op.value.get("hold"), [])
                _time(begin, op, lasting, killed.get(op.process))
        yield op.index, event


def _granted_early(history: History) -> dict[int, Op | None]:
    """Grants to clients whose lease the service had ended while they waited: they must have
    happened before that, if they did. By index: the notice stands for the answer, which is
    passed over where it came.
    """
    found: dict[int, Op | None] = {}
    ended: dict[int | str, Op] = {}
    for op in history.clients():
        if op.f == "lost" and op.value.get("hold") is None:
            ended.setdefault(op.process, op)
        elif op.f == "acquire":
            notice = ended.pop(op.process, None)
            if notice is not None and op.type == "ok":
                found |= {notice.index: replace(op, time=notice.time), op.index: None}
    return found


def _killed(history: History) -> dict[int | str, int]:
    """When each client that was killed may have been gone, by process: once it was ordered."""
    return {
        process: fault.start
        for fault in faults(history)
        for receipt in fault.receipts
        for process in receipt.get("processes", ())
    }


def _time(begin: dict[str, Any], end: Op, renewed: list[Op], killed_ns: int | None = None) -> None:
    """Give an op the lease that its client may count on, from its invocation.

    A session may have been heard of last before the op was invoked, and so may expire before its
    invocation + ttl: where the client's own deadline is earlier, that counts. Where the client can
    see no deadline, nothing is known about its lease, and it may expire at any time. A grant that
    was renewed in the background, each time before it ran out, lasts to the end of the last one.
    Nobody counts on a lease whose client was killed: a service that notices (its connection is
    closed) may end it from then on.
    """
    if "ttl" not in begin["value"]:
        return
    deadline = end.value.get("deadline")
    lease = 0 if deadline is None else max(0, int(deadline) - begin["time"])
    lease = min(begin["value"]["ttl"], lease)
    if end.f == "acquire" and deadline is not None:
        until = int(deadline)
        for op in renewed:
            if op.time <= until:
                until = max(until, int(op.value["deadline"]))
        if until > deadline:
            lease = until - begin["time"]
    if killed_ns is not None:
        lease = min(lease, max(0, killed_ns - begin["time"]))
    begin["value"]["ttl"] = lease
