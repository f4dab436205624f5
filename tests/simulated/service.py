"""The lock service: one state machine behind its servers.

Its clients' holds last in one of three ways. With `lease` each hold has a lease of its own, which
ends with time or by its release; a refused client retries. With `close` holds belong to a session
that lives as long as it is renewed, and its client can end it; with `connection`, as long as the
service sees its client. Both have a queue.

The service is sound unless it has a defect. It records its grants in order: that is the truth,
which clients may learn late or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.simulated.cluster import Cluster
from tests.simulated.defects import Defect
from tests.simulated.network import Network
from tests.simulated.state import (
    Holder,
    LockState,
    Owner,
    Rules,
    Session,
    Socket,
    Waiter,
    fits,
)
from tests.simulated.tokens import Tokens
from tests.simulated.world import FOREVER, MS, Process, World


class Service:
    def __init__(
        self, world: World, network: Network, cluster: Cluster, rules: Rules, defect: Defect
    ) -> None:
        self._world = world
        self._network = network
        self._cluster = cluster
        self._rules = rules
        self._defect = defect
        self.locks: dict[str, LockState] = {}
        self.sessions: dict[str, Session] = {}
        self.order: dict[Owner, int] = {}
        self._told: dict[Owner, int] = {}
        self._tokens = Tokens(world, cluster, rules, defect)
        cluster.restored = self._restored
        if rules.ends_with == "connection":
            world.after(100 * MS, self._look)

    # Leases: every hold has its own.

    def draw(self, lock: str) -> int | None:
        """Return the next token before the lock is granted: only a client with a defect asks."""
        return self._tokens.next(self._lock(lock), shared=False)

    def take(
        self, process: Process, lock: str, owner: Owner, shared: bool, ttl: int
    ) -> tuple[str, int | None]:
        """Grant a hold at once if no other one conflicts, or refuse it."""
        state = self._lock(lock)
        self._expire(state)
        if not fits(state, shared) and not self._errs_early(state, shared):
            return "held", None
        holder = Holder(owner, shared, None, self._over(ttl), process)
        return "granted", self._grant(state, holder)

    def extend(self, process: Process, lock: str, owner: Owner, ttl: int) -> bool:
        state = self._lock(lock)
        self._expire(state)
        for holder in state.holders:
            if holder.owner == owner:
                holder.expires = self._over(ttl)
                return True
        if state.holders and self._defect.strikes("extends_unchecked"):
            state.holders[0].expires = self._over(ttl)
            return True
        if not state.holders and self._defect.strikes("recreates_key"):
            state.holders.append(Holder(owner, False, None, self._over(ttl), process))
            return True
        return self._defect.strikes("extends_lost")

    def _over(self, ttl: int) -> int:
        """Return the end of a lease: after its ttl, and sometimes a little later, never before."""
        late = self._world.between(0, 60) * self._world.chance(0.3)
        return self._world.now + self._lease(ttl) + late

    def _lease(self, ttl: int) -> int:
        wrong = self._defect.strikes("short_lease") or self._defect.strikes("long_lease")
        return int(ttl * self._rules.factor) if wrong else ttl

    def drop(self, lock: str, owner: Owner) -> bool:
        """Release the lock; return whether this owner held it."""
        return self._release(self._lock(lock), owner)

    def holds(self, lock: str, owner: Owner) -> bool:
        """Return whether this owner holds the lock: the check before a delete in two steps."""
        state = self._lock(lock)
        self._expire(state)
        return any(holder.owner == owner for holder in state.holders)

    def delete(self, lock: str) -> bool:
        """Delete the lock, also that of another owner: only a client with a defect asks."""
        state = self._lock(lock)
        self._expire(state)
        if state.holders:
            state.holders.clear()
            return True
        return False

    # Sessions: holds live as long as their client's.

    def open(self, socket: Socket, name: str, ttl: int) -> bool:
        if name not in self.sessions:
            now = self._world.now
            timed = self._rules.ends_with == "close"
            ttl = self._lease(ttl) if timed else ttl
            expires = now + ttl if timed else FOREVER
            self.sessions[name] = session = Session(name, socket, ttl, expires, now)
            if timed:
                self._world.at(expires, self._check, session)
        return not self.sessions[name].ended

    def beat(self, name: str) -> bool:
        """Return whether the session lives, and renew it."""
        session = self.sessions.get(name)
        if session is None:
            return False
        if session.ended:
            return self._defect.strikes("extends_lost")
        if session.expires < FOREVER:
            session.expires = self._world.now + session.ttl
        return True

    def enqueue(
        self, process: Process, owner: Owner, lock: str, shared: bool, tell: Callable[[Any], None]
    ) -> tuple[str, int | None, int]:
        """Enter the queue, or keep the place when asked again; return the state of the request."""
        session = self.sessions.get(owner[0])
        if session is None or session.ended:
            return "expired", None, 0
        if owner[1] in session.answers:
            return "over", None, 0
        state = self._lock(lock)
        if not any(holder.owner == owner for holder in state.holders):
            waiter = next((w for w in state.queue if w.owner == owner), None)
            if waiter is None:
                state.queue.append(Waiter(owner, shared, process, tell))
                if not fits(state, shared) and self._errs_early(state, shared):
                    self._admit(state, state.queue[-1])
            else:
                waiter.tell = tell
            self._promote(state, quiet=owner)
        return self._standing(state, owner)

    def confirm(self, owner: Owner, lock: str) -> bool:
        """Return whether this hold is on, and renew its session."""
        mine = any(holder.owner == owner for holder in self._lock(lock).holders)
        return self.beat(owner[0]) and mine

    def leave(self, owner: Owner, lock: str) -> str:
        """Give up waiting, or the hold that was granted meanwhile."""
        session = self.sessions.get(owner[0])
        if session is not None:
            session.answers.setdefault(owner[1], False)
        self._forget(self._lock(lock), owner)
        return "left"

    def free(self, owner: Owner, lock: str) -> bool:
        session = self.sessions.get(owner[0])
        if session is None:
            return False
        if owner[1] not in session.answers:
            session.answers[owner[1]] = self._release(self._lock(lock), owner)
        return bool(session.answers[owner[1]])

    def end(self, name: str) -> bool:
        session = self.sessions.get(name)
        if session is not None and not session.ended:
            self._end(session)
        return True

    # Holds and sessions that end by themselves.

    def wipe(self, servers: Iterable[str]) -> None:
        """Forget the holds of a lock as some servers stop: a defect."""
        for state in self.locks.values():
            if state.holders and self._defect.strikes("forgets"):
                state.holders.clear()
                self._promote(state)

    def _check(self, session: Session) -> None:
        """End a session whose time has passed; never before."""
        if session.ended:
            return
        if self._world.now < session.expires:
            self._world.at(session.expires, self._check, session)
        elif self._cluster.works() and not self._keeps(session.socket.process):
            self._end(session)

    def _restored(self) -> None:
        for session in self.sessions.values():
            if not session.ended and session.expires < FOREVER:
                self._world.after(self._world.between(0, 50), self._check, session)
        for state in self.locks.values():
            self._promote(state)

    def _look(self) -> None:
        """End the sessions of clients that are dead, or that were not seen for long."""
        now = self._world.now
        self._world.after(self._world.between(40, 120), self._look)
        serving = [name for name in self._cluster.names if self._cluster.serves(name)]
        if not serving:
            for session in self.sessions.values():
                session.seen = now
            return
        for session in list(self.sessions.values()):
            if session.ended:
                continue
            node = session.socket.process.node
            linked = any(
                self._network.open(node, name) and self._network.open(name, node)
                for name in serving
            )
            gone = session.socket.closed or session.socket.process.dead
            if linked and not gone:
                session.seen = now
            elif (linked or now - session.seen > self._rules.unseen_ns) and not (
                self._keeps(session.socket.process)
            ):
                self._end(session)

    def _end(self, session: Session) -> None:
        session.ended = True
        for state in self.locks.values():
            for owner in [
                entry.owner
                for entry in (*state.holders, *state.queue)
                if entry.owner[0] == session.name
            ]:
                self._forget(state, owner)

    def _expire(self, state: LockState) -> None:
        now = self._world.now
        if self._rules.ends_with == "lease":
            state.holders = [
                holder
                for holder in state.holders
                if holder.expires > now or self._keeps(holder.process, holder.shared)
            ]

    def _keeps(self, process: Process, shared: bool = False) -> bool:
        """Return whether the defect keeps a hold whose lease or session has ended."""
        strikes = self._defect.strikes
        if process.dead:
            return strikes("keeps_dead") or (shared and strikes("dead_reader"))
        return strikes("never_expires") or strikes("keeps_unreleased")

    # Granting.

    def _lock(self, name: str) -> LockState:
        if name not in self.locks:
            self.locks[name] = LockState(name, self._world.random.randrange(50))
        return self.locks[name]

    def _release(self, state: LockState, owner: Owner) -> bool:
        self._expire(state)
        for holder in state.holders:
            if holder.owner == owner:
                if self._defect.strikes("leaks_release"):
                    holder.owner, holder.expires = ("nobody", 0), FOREVER
                elif not self._defect.strikes("noop_release"):
                    self._forget(state, owner)
                return True
        if state.holders and self._defect.strikes("releases_foreign"):
            state.holders.clear()
            self._woken(state)
            self._promote(state)
            return True
        return False

    def _forget(self, state: LockState, owner: Owner) -> None:
        """Remove an owner from a hold or the queue, and wake the next in the queue."""
        for place, waiter in enumerate(state.queue):
            if waiter.owner == owner:
                del state.queue[place]
                self._woken(state, place)
                break
        else:
            held = [holder for holder in state.holders if holder.owner == owner]
            if not held:
                return
            state.holders.remove(held[0])
            self._woken(state)
        self._promote(state)

    def _woken(self, state: LockState, place: int = 0) -> None:
        """Wake the waiter behind a removed entry, and no other."""
        if self._defect.strikes("wakes_herd"):
            for waiter in state.queue:
                waiter.wakeups += 1
        elif place < len(state.queue):
            state.queue[place].wakeups += 1

    def _promote(self, state: LockState, quiet: Owner | None = None) -> None:
        """Grant to the head of the queue while it fits; notify all clients except `quiet`."""
        if not self._cluster.works():
            return
        while state.queue:
            place = 0
            if len(state.queue) > 1 and self._defect.strikes("jumps_queue"):
                place = len(state.queue) - 1
            waiter = state.queue[place]
            if not fits(state, waiter.shared) and not (
                not waiter.shared
                and all(holder.shared for holder in state.holders)
                and self._defect.strikes("mixes_modes")
            ):
                return
            self._admit(state, waiter)
            if waiter.owner != quiet:
                waiter.tell(self._standing(state, waiter.owner))

    def _admit(self, state: LockState, waiter: Waiter) -> None:
        state.queue.remove(waiter)
        holder = Holder(waiter.owner, waiter.shared, None, FOREVER, waiter.process)
        self._grant(state, holder)
        self._told[waiter.owner] = waiter.wakeups

    def _grant(self, state: LockState, holder: Holder) -> int | None:
        if self._defect.name != "early_token":  # else its client has drawn one
            holder.token = self._tokens.next(state, holder.shared)
        state.holders.append(holder)
        self.order[holder.owner] = len(self.order) + 1
        return holder.token

    def _standing(self, state: LockState, owner: Owner) -> tuple[str, int | None, int]:
        for holder in state.holders:
            if holder.owner == owner:
                return "granted", holder.token, self._told.get(owner, 0)
        return "queued", None, 0

    def _errs_early(self, state: LockState, shared: bool) -> bool:
        """Return whether the defect grants although a hold conflicts, with it or instead of it."""
        if shared and self._defect.strikes("mixes_modes"):
            return True
        only_shared = all(holder.shared for holder in state.holders)
        if not shared and only_shared and self._defect.strikes("mixes_modes"):
            return True
        if not self._defect.strikes("grants_early"):
            return False
        if self._world.chance(0.5):
            state.holders.clear()
        return True
