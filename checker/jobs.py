"""`jobs`: was each job of a scheduler done at most once?

An elector whose library sends the jobs itself names them with each write. A job is done if its
write is ok. It is done twice if two such writes name it, whoever sent them: a scheduler that
does a job before it notes that down does it twice after a crash, too. A write of unknown outcome
counts as not done, so that a scheduler may repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from fencepost.checker.checker import Checker, Test, of_history
from fencepost.checker.facts.holds import seconds
from fencepost.checker.history.history import Call, History
from fencepost.checker.verdict import Verdict, count

NO_JOBS = "the lock is not an elector that drives its work"
"""Why it does not apply. Tests of other locks do not mention it."""


def jobs(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that no job was done twice. Jobs of a single leader decide nothing."""
    done: dict[str, list[Call]] = {}
    for call in history.calls():
        if call.begin.f == "write" and call.type == "ok":
            for name in call.value.get("jobs") or ():
                done.setdefault(str(name), []).append(call)
    twice = [(name, pair) for name, calls in done.items() for pair in pairwise(calls)]
    evidence = [_evidence(name, *pair) for name, pair in twice]
    evidence.sort(key=lambda row: row["time_ns"])
    leaders = {str(call.value.get("hold")) for calls in done.values() for call in calls}
    details = {"jobs": len(done), "jobs_twice": len({name for name, _ in twice})}
    did = f"{count(len(leaders), 'leader')} did {count(len(done), 'job')}"
    if evidence:
        return Verdict(False, f"{did}, {details['jobs_twice']} of them twice.", evidence, details)
    if len(leaders) < 2:
        return Verdict("unknown", f"{did}: the leader of the jobs never changed.", [], details)
    return Verdict(True, f"{did}, none of them twice.", [], details)


def _evidence(name: str, first: Call, second: Call) -> dict[str, Any]:
    return {
        "what": (
            f"Job {name} was done twice: by {_who(first)} at {seconds(first.begin.time)}, and by "
            f"{_who(second)} at {seconds(second.begin.time)}."
        ),
        "time_ns": second.begin.time,
        "holds": [first.value.get("hold"), second.value.get("hold")],
        "ops": [first.begin.index, second.begin.index],
    }


def _who(call: Call) -> str:
    return f"{call.begin.node} ({call.value.get('hold')})"


def _applies(test: Test) -> str | None:
    lock = test.get("lock")
    drives = isinstance(lock, Mapping) and bool(lock.get("drives_work"))
    return None if drives else NO_JOBS


CHECKER = Checker(
    name="jobs",
    question="No job of a scheduler was done twice.",
    about=("resource",),
    check=of_history(jobs),
    column="jobs",
    applies=_applies,
    touches=lambda history: False,
    goal=True,
    goal_rank=16,
)
