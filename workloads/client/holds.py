"""The holds of one process, and the notices of its lock's own threads about them.

Each process has its own holds. Once they are dropped they report nothing more: a notice that
arrives later has no process.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.workloads.client.wire import Said
from fencepost.workloads.contract.lock import Failed, Grant

# Remembered ended holds: those still held, and those that no `acquire` returned.
_LOST = 1000


class Holds:
    """Grants by the name of their hold. Reports notices (`lost`, `renewed`), which are not
    requested."""

    def __init__(self, out: Said) -> None:
        self._out = out
        self._grants: dict[str, Grant] = {}
        self._names: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._waits_for: str | None = None
        self._dropped = False

    def get(self, hold: str | None) -> Grant | None:
        """Return the grant of a hold, or None if this process has no such hold."""
        return None if hold is None else self._grants.get(hold)

    def granted(self, hold: str) -> Grant:
        """Return the grant of a hold. Failed "not-held" if this process has no such hold."""
        grant = self._grants.get(hold)
        if grant is None:
            raise Failed("not-held", f"this process has no hold {hold}")
        return grant

    @property
    def any(self) -> bool:
        """Whether a hold was not released."""
        return bool(self._grants)

    def waits_for(self, lock: str | None) -> None:
        """Set the lock that is being acquired; None: the wait has ended."""
        self._waits_for = lock

    def add(self, hold: str, grant: Grant) -> None:
        with self._out.speaking:
            self._grants[hold] = grant
            self._names[grant.secret] = hold

    def update(self, hold: str, grant: Grant) -> None:
        self._grants[hold] = grant

    def remove(self, hold: str) -> Grant:
        """Forget a hold that is about to be released; return its grant. Failed if there is none."""
        with self._out.speaking:
            grant = self.granted(hold)
            del self._grants[hold]
            self._names.pop(grant.secret, None)
            self._lost.pop(grant.secret, None)
        return grant

    def settle(self, hold: str | None) -> None:
        """Note that the resource has seen this hold's token, and refuses earlier ones from now
        on."""
        with self._out.speaking:
            grant = self.get(hold)
            if hold is not None and grant is not None and grant.token is not None:
                self._grants[hold] = replace(grant, settled=True)

    def is_lost(self, grant: Grant) -> bool:
        return grant.secret in self._lost

    def drop(self) -> None:
        """Drop the holds of a process that is gone. Later notices of its lock are not written."""
        with self._out.speaking:
            self._dropped = True

    # Notices of the lock's own threads, through its env.

    def renewed(self, secret: str, deadline: int) -> None:
        """Report that a lease was renewed in the background."""
        with self._out.speaking:
            hold = self._names.get(secret)
            if not self._dropped and hold is not None:
                grant = self._grants[hold] = replace(self._grants[hold], deadline=deadline)
                value = {"lock": grant.name, "hold": hold, "deadline": deadline}
                self._out.event("info", "renewed", value)
                self._out.flush()

    def lost(self, secret: str, why: str) -> None:
        """Report a hold as lost; perhaps before `acquire` has returned it."""
        with self._out.speaking:
            if self._dropped or secret in self._lost:
                return
            self._lost[secret] = why
            if len(self._lost) > _LOST:
                del self._lost[next(iter(self._lost))]
            self._say_lost(secret)

    def say_if_lost_already(self, grant: Grant) -> None:
        """Report a new hold as lost if its lock did so before `acquire` returned."""
        if self._lost:
            with self._out.speaking:
                if grant.secret in self._lost:
                    self._say_lost(grant.secret)

    def _say_lost(self, secret: str) -> None:
        hold = self._names.get(secret)
        if hold is not None:
            value = {"lock": self._grants[hold].name, "hold": hold}
            self._out.event("info", "lost", value, Failed("lost", self._lost[secret]))
            self._out.flush()

    def expired(self, why: str) -> None:
        """Report that the service ended the lease or session with which this client waits for a
        grant."""
        self._waits_no_more("expired", why)

    def requeued(self, why: str) -> None:
        """Report that this client may have lost its place in the queue, and asks again by
        itself."""
        self._waits_no_more("requeued", why)

    def _waits_no_more(self, kind: str, why: str) -> None:
        with self._out.speaking:
            if not self._dropped and self._waits_for is not None:
                value = {"lock": self._waits_for, "hold": None}
                self._out.event("info", "lost", value, Failed(kind, why))
                self._out.flush()
