"""Stops the threads of a client that renew its leases, and no others.

    threads hold PID   stop them, each while it waits in the kernel; print names and states
    threads go PID     resume them; print their states

These are the threads whose name begins with `renew`, as in fencepost's own clients; in a process
without such names, all but the main one. ptrace stops them, so they resume when the tracer is gone:
the agent, which ends with the harness.

A thread is stopped only while it waits. Elsewhere it may own Python's interpreter lock, or one of
malloc's, and all other threads would wait for it: that would pause the whole process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.node.processes import status
from fencepost.node.tracing import keep, let_go_on, traced_threads

_NAMED = "renew"


def command(words: list[str]) -> dict[str, Any]:
    """Run a verb. OSError: no such process, no thread to stop, or one that never waits."""
    match words:
        case ["hold", pid]:
            return _hold(int(pid))
        case ["go", pid]:
            return _go(int(pid))
    raise OSError(f"unknown verb threads {' '.join(words)}; use hold or go")


def _hold(pid: int) -> dict[str, Any]:
    names = _names(pid)
    others = {tid: name for tid, name in names.items() if tid != pid}
    chosen = {tid: name for tid, name in others.items() if name.startswith(_NAMED)} or others
    if not chosen:
        raise OSError(f"process {pid} has no thread other than its main one: it renews no lease")
    keep(pid, list(chosen))
    return _states(pid, chosen)


def _go(pid: int) -> dict[str, Any]:
    held = traced_threads(pid)
    names = _names(pid)
    let_go_on(pid)
    return _states(pid, {tid: names.get(tid, "") for tid in held})


def _states(pid: int, threads: dict[int, str]) -> dict[str, Any]:
    """Return `threads`: each one's id, name and state (a letter, proc(5); "" once it has ended)."""
    rows = [{"tid": tid, "name": name, "state": _state(pid, tid)} for tid, name in threads.items()]
    return {"threads": rows, "main": _state(pid, pid)}


def _names(pid: int) -> dict[int, str]:
    """Return the name of each thread of a process; none, once it has ended."""
    found = {}
    for place in sorted(Path(f"/proc/{pid}/task").glob("*"), key=lambda place: int(place.name)):
        try:
            found[int(place.name)] = (place / "comm").read_text().strip()
        except OSError:
            continue  # it has ended since
    return found


def _state(pid: int, tid: int) -> str:
    try:
        return status(f"{pid}/task/{tid}")[0]
    except OSError:
        return ""
