"""Locks rows, as `heap_lock_tuple` and `heap_update` (heapam.c) do.

A lock has one of four strengths. Two conflict if their sum is at least 3: FOR KEY SHARE conflicts
with FOR UPDATE only. An update that leaves the keys as they are is FOR NO KEY UPDATE; the next
version of the row has the locks of those that remain. A session that has to wait takes the lock on
the tuple first, so that it is the next one; it keeps it until it has the row.
"""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.heap import Table, Version
from fencepost.hunt.models.postgres.locks import Waits

KEY_SHARE, SHARE, NO_KEY_UPDATE, UPDATE = range(4)
LOCKED, SKIPPED, ENDED = "locked", "skipped", "ended"
_TUPLE_MODES = {KEY_SHARE: 1, SHARE: 2, NO_KEY_UPDATE: 7, UPDATE: 8}


def newest(
    session: Any, table: Table, version: Version, strength: int, later: int, policy: str = "wait"
) -> Waits:
    """Lock a row, and return its newest version; None: it is gone, or is skipped. `later`: how
    strongly another version than the given one is locked."""
    while True:
        done = yield from lock(session, table, version, strength, policy)
        if done != ENDED:
            return version if done == LOCKED else None
        if session.isolation != "read committed":
            what = "update" if version.next is not None else "delete"
            raise PgError("40001", f"could not serialize access due to concurrent {what}")
        if version.next is None:
            return None
        version, strength = version.next, later


def lock(
    session: Any, table: Table, version: Version, strength: int, policy: str = "wait"
) -> Waits:
    """Lock a version of a row. ENDED: it was updated or deleted; SKIPPED: by this statement, or
    another session has it locked, and the policy is to skip it."""
    session.assign()
    tag, mode, queued = ("tuple", id(version), version), _TUPLE_MODES[strength], False
    try:
        while True:
            ended = version.ended
            if ended is not None and ended.top is session.top:
                return SKIPPED
            keeps_key = strength == KEY_SHARE and version.strength < UPDATE
            if ended is not None and not ended.running and not keeps_key:
                return ENDED
            if version.in_the_way(strength, session.top):
                if policy == "skip":
                    return SKIPPED
                if policy != "wait":
                    words = f'could not obtain lock on row in relation "{table.name}"'
                    raise PgError("55P03", words)
                if not queued and not version.locked_by(session.top):
                    yield from session.server.locks.acquire(session, tag, mode)
                    queued = True
                for xact in version.in_the_way(strength, session.top):
                    yield from session.wait_for(xact)
                continue
            if ended is not None:
                if not (yield from _lock_later(session, version, strength)):
                    return ENDED
                if version.ended is not ended or version.in_the_way(strength, session.top):
                    continue
            _note(session, version, strength)
            return LOCKED
    finally:
        # A crash has dropped all locks by the time at which it ends this statement.
        if queued and session.server.locks.held(session, tag, mode):
            session.server.locks.release(session, tag, mode)


def _note(session: Any, version: Version, strength: int) -> None:
    held = version.lockers.get(session.xact, KEY_SHARE)
    version.lockers[session.xact] = max(strength, held)


def _lock_later(session: Any, version: Version, strength: int) -> Waits:
    """Lock the versions after this one, too (`heap_lock_updated_tuple`); return whether none of
    them has ended."""
    later = version.next
    while later is not None and not later.xmin.dead:
        ended = later.ended
        over = ended is not None and not ended.running
        if over and later.strength + strength >= UPDATE:
            return False
        others = later.in_the_way(strength, session.top)
        if others:
            yield from session.wait_for(others[0])
            continue
        _note(session, later, strength)
        later = later.next if ended is not None else None
    return True
