"""Simulates one PostgreSQL server: its tables, its sessions, and their locks."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.postgres.backend import Backend
from fencepost.hunt.models.postgres.connection import Connection
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.heap import Sequence_, Table
from fencepost.hunt.models.postgres.locks import Locks
from fencepost.hunt.sim.network import Network, Request, Server, Session, Wire
from fencepost.hunt.sim.unknown import Unknown

_SHUT = PgError(
    "57P01", "terminating connection due to administrator command", "FATAL"
)  # fmt: skip


class PostgresServer(Server):
    """`commits`: how many transactions have committed. Each commit is on disk. `keeps`: whether any
    session has a lock while it waits for its next query, from each time (ns) on."""

    __slots__ = ("_keepers", "_numbers", "_oids", "_pids", "_proceeds", "commits", "keeps",
                 "locks", "network", "relations", "sequences", "session_ends", "sessions",
                 "world")  # fmt: skip

    port = 5432
    duplex = True

    def __init__(self, name: str, index: int, network: Network) -> None:
        super().__init__(name, index)
        self.kept = True
        self.network = network
        self.world = network.world
        self.commits = 1
        self.locks = Locks()
        self.relations: dict[str, Table] = {}
        self.sequences: dict[str, Sequence_] = {}
        self.sessions: dict[int, Backend] = {}
        self.keeps: list[tuple[int, bool]] = []
        self.session_ends: dict[str, list[int]] | None = {}
        self._keepers: set[int] = set()
        self._numbers = 700
        self._oids = 16384
        self._pids = 100
        self._proceeds = False

    # Sessions.

    def session(self) -> Session:
        return Connection(self)

    def connect(
        self, user: str, database: str, say: Any, hang_up: Any, client: str = ""
    ) -> Backend:
        """Begin a session. `client`: the node of its client."""
        self._pids += 1
        made = Backend(self, self._pids, user, database, say, hang_up)
        made.client = client
        self.sessions[made.pid] = made
        return made

    def rests(self, session: Backend) -> None:
        """Note whether a session that waits for its next query has a lock."""
        if self.locks.any_of(session):
            self._keepers.add(session.pid)
        else:
            self._keepers.discard(session.pid)
        keeps = bool(self._keepers)
        if not self.keeps or self.keeps[-1][1] != keeps:
            self.keeps.append((self.world.now, keeps))

    def ended(self, session: Backend) -> None:
        self._note_end(session)
        self._keepers.discard(session.pid)
        self.sessions.pop(session.pid, None)

    def _note_end(self, session: Backend) -> None:
        if self.session_ends is not None:
            self.session_ends.setdefault(session.client, []).append(self.world.now)

    def proceed(self) -> None:
        """Resume the sessions whose locks have been granted."""
        if self._proceeds:
            return
        self._proceeds = True
        try:
            while self.locks.granted:
                waiter = self.locks.granted.pop(0)
                owner: Any = waiter.owner
                if owner.waiter is waiter:
                    owner.resume()
        finally:
            self._proceeds = False

    def cancel(self, pid: int, secret: int) -> None:
        """Cancel the statement of a session, on a client's request over another connection."""
        found = self.sessions.get(pid)
        if found is not None and found.secret == secret:
            found.interrupt(PgError("57014", "canceling statement due to user request"))

    def cancel_pid(self, by: Backend, pid: int) -> bool:
        found = self.sessions.get(pid)
        if found is None:
            by.notice("WARNING", "01000", f"PID {pid} is not a PostgreSQL server process")
            return False
        found.interrupt(PgError("57014", "canceling statement due to user request"))
        return True

    def terminate_pid(self, by: Backend, pid: int) -> bool:
        found = self.sessions.get(pid)
        if found is None:
            by.notice("WARNING", "01000", f"PID {pid} is not a PostgreSQL server process")
            return False
        found.terminate(_SHUT)
        return True

    # Data.

    def table(self, session: Any, name: str) -> Table:
        found = self.relations.get(name)
        if found is None or not _visible(found, session):
            if name.startswith(("pg_", "information_schema")):
                raise Unknown(f"the model of PostgreSQL has no catalog {name}")
            raise PgError("42P01", f'relation "{name}" does not exist')
        return found

    def sequence(self, name: str) -> Sequence_:
        found = self.sequences.get(name.strip('"'))
        if found is None:
            raise PgError("42P01", f'relation "{name}" does not exist')
        return found

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def next_oid(self) -> int:
        self._oids += 1
        return self._oids

    def prune(self, table: Table) -> None:
        """Forget old versions, unless a transaction has an old snapshot."""
        if all(one.isolation == "read committed" for one in self.sessions.values()):
            table.prune()

    # The simulation.

    def handle(self, command: tuple[Any, ...]) -> Any:
        raise Unknown("the model of PostgreSQL speaks with clients over their own sockets only")

    def wait(self, request: Request) -> None:
        raise AssertionError("no request waits at its socket")

    def left(self, link: Wire) -> None:
        session = getattr(link, "session", None)
        if isinstance(session, Connection):
            session.left()

    def crash(self, power: bool) -> None:
        self.up = False
        self.boots += 1
        for one in list(self.sessions.values()):
            one.over = True
            self._note_end(one)
            one.rollback_in_crash()
        self.sessions.clear()
        self.locks.clear()
        for sequence in self.sequences.values():
            sequence.crash()
        self.network.broken(self)

    def start(self) -> None:
        self.up = True
        self.paused_until = 0

    def forget(self) -> None:
        for one in self.sessions.values():
            one.over = True
        self.sessions.clear()
        self.locks.clear()


def _visible(table: Table, session: Any) -> bool:
    creator = table.creator
    if creator is None or creator.top.committed:
        return True
    return bool(session.in_xact) and creator.top is session.top
