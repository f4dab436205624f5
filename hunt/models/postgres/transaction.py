"""The transaction of a session, with its savepoints, and the locks that end with it."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.postgres import locks
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.heap import Table, Version, Xact
from fencepost.hunt.models.postgres.locks import Tag, Waits
from fencepost.hunt.models.postgres.settings import Settings
from fencepost.hunt.models.postgres.syntax import Transaction

_NAMES = {5: "ShareLock", 7: "ExclusiveLock"}


class Transactions:
    """`block`: `I` outside of a transaction block, `T` in one, `E` in one that has failed."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.settings = Settings()
        self.waiter: Any = None
        self.block = "I"
        # Several statements in one query are a transaction of their own.
        self.implicit = False
        self.isolation = "read committed"
        self.begun_us = self.statement_us = 0
        self.inserted: set[Version] = set()
        self._stack: list[Xact] = []
        self._snapshot: int | None = None
        self._session_locks: dict[tuple[Tag, int], int] = {}

    # Hooks of the session.

    def notice(self, severity: str, code: str, message: str) -> None:
        raise NotImplementedError

    # The transaction.

    @property
    def top(self) -> Xact:
        return self._stack[0]

    @property
    def xact(self) -> Xact:
        return self._stack[-1]

    @property
    def in_xact(self) -> bool:
        return bool(self._stack)

    def clock_us(self) -> int:
        return int(self.server.clock.ns(self.server.world.now)) // 1000

    def begin_statement(self) -> None:
        """Begin a transaction, unless there is one."""
        self.inserted.clear()
        if not self._stack:
            self.begun_us = self.statement_us
            self._stack = [Xact()]
            self.isolation = "read committed"
            self._snapshot = None

    def snapshot(self) -> int:
        if self.isolation == "read committed":
            return int(self.server.commits)
        if self._snapshot is None:
            self._snapshot = self.server.commits
        return self._snapshot

    def assign(self) -> None:
        """Give the transaction, and its parts, a number: others can wait for it from now on."""
        for one in self._stack:
            if not one.number:
                one.number = self.server.next_number()
                self._note(("xid", one), locks.EXCLUSIVE, one)
                self.server.locks.at_once(self, ("xid", one), locks.EXCLUSIVE)

    def touches(self, table: Table) -> None:
        self.top.touched[table] = None

    def wait_for(self, xact: Xact) -> Waits:
        tag = ("xid", xact)
        yield from self.server.locks.acquire(self, tag, locks.SHARE)
        self.server.locks.release(self, tag, locks.SHARE)

    def _note(self, tag: Tag, mode: int, xact: Xact) -> None:
        xact.locks.append((tag, mode))

    def commit(self) -> None:
        if not self._stack:
            return
        top = self.top
        self.server.commits += 1
        top.committed = self.server.commits
        self._end()

    def rollback(self) -> None:
        if not self._stack:
            return
        for one in reversed(self._stack):
            self._undo(one)
        self.top.aborted = True
        self._end()

    def _undo(self, xact: Xact) -> None:
        xact.aborted = True
        for undo in reversed(xact.undo):
            undo()
        xact.undo.clear()

    def _end(self) -> None:
        stack, self._stack = self._stack, []
        self.block = "I"
        self._snapshot = None
        for one in stack:
            self._release(one)
        top = stack[0]
        for undo in [u for one in stack for u in one.undo if getattr(u, "local", False)]:
            undo()
        for table in top.touched:
            self.server.prune(table)

    def _release(self, xact: Xact) -> None:
        held, xact.locks = xact.locks, []
        for tag, mode in held:
            self.server.locks.release(self, tag, mode)

    def fail(self) -> None:
        """Roll back after an error: a transaction block stays until the client ends it."""
        if self.block == "I":
            self.rollback()
        elif self.block == "T":
            one = self.xact
            self._undo(one)
            self._release(one)
            self.block = "E"

    def rollback_in_crash(self) -> None:
        """Roll back without releasing locks: the server has crashed."""
        for one in reversed(self._stack):
            self._undo(one)
        self._stack = []

    # Statements about it.

    def transact(self, asked: Transaction) -> str:
        """Execute BEGIN, COMMIT and the like; return the tag."""
        match asked.do:
            case "begin":
                if self.block != "I":
                    self.notice("WARNING", "25001", "there is already a transaction in progress")
                self.block = "T" if self.block == "I" else self.block
                if asked.isolation:
                    self.isolation = asked.isolation
                return asked.tag
            case "commit" | "rollback":
                return self._finish(asked.do == "commit")
            case "savepoint":
                self._in_block("SAVEPOINT")
                self._stack.append(Xact(parent=self.xact, name=asked.name))
                return "SAVEPOINT"
            case "release":
                self._in_block("RELEASE SAVEPOINT")
                place = self._savepoint(asked.name)
                for one in reversed(self._stack[place:]):
                    assert one.parent is not None
                    one.parent.locks += one.locks
                    one.parent.undo += one.undo
                    one.locks, one.undo = [], []
                del self._stack[place:]
                return "RELEASE"
            case _:
                self._in_block("ROLLBACK TO SAVEPOINT")
                place = self._savepoint(asked.name)
                for one in reversed(self._stack[place:]):
                    self._undo(one)
                    self._release(one)
                del self._stack[place:]
                self._stack.append(Xact(parent=self.xact, name=asked.name))
                self.block = "T"
                return "ROLLBACK"

    def _finish(self, commits: bool) -> str:
        if self.block == "I":
            self.notice("WARNING", "25P01", "there is no transaction in progress")
        if commits and self.block != "E":
            self.commit()
            return "COMMIT"
        self.rollback()
        return "ROLLBACK"

    def _in_block(self, what: str) -> None:
        if self.block == "I":
            raise PgError("25P01", f"{what} can only be used in transaction blocks")

    def _savepoint(self, name: str) -> int:
        for place in range(len(self._stack) - 1, 0, -1):
            if self._stack[place].name == name:
                return place
        raise PgError("3B001", f'savepoint "{name}" does not exist')

    # Locks.

    def lock_table(self, table: Table, mode: int, nowait: bool = False) -> Waits:
        tag = ("table", table)
        if self.server.locks.held(self, tag, mode):
            return
        if not nowait:
            yield from self.server.locks.acquire(self, tag, mode)
        elif not self.server.locks.at_once(self, tag, mode):
            raise PgError("55P03", f'could not obtain lock on relation "{table.name}"')
        self._note(tag, mode, self.xact)

    def advisory_lock(self, key: tuple[int, ...], mode: int, xact: bool) -> Waits:
        tag = ("advisory", self._database, *key)
        yield from self.server.locks.acquire(self, tag, mode)
        self._keep(tag, mode, xact)
        return ""

    @property
    def _database(self) -> str:
        return str(getattr(self, "database", ""))

    def try_advisory_lock(self, key: tuple[int, ...], mode: int, xact: bool) -> bool:
        tag = ("advisory", self._database, *key)
        taken = bool(self.server.locks.at_once(self, tag, mode))
        if taken:
            self._keep(tag, mode, xact)
        return taken

    def _keep(self, tag: Tag, mode: int, xact: bool) -> None:
        if xact:
            self._note(tag, mode, self.xact)
        else:
            self._session_locks[tag, mode] = self._session_locks.get((tag, mode), 0) + 1

    def advisory_unlock(self, key: tuple[int, ...], mode: int) -> bool:
        tag = ("advisory", self._database, *key)
        count = self._session_locks.get((tag, mode), 0)
        if not count:
            words = f"you don't own a lock of type {_NAMES[mode]}"
            self.notice("WARNING", "01000", words)
            return False
        if count == 1:
            del self._session_locks[tag, mode]
        else:
            self._session_locks[tag, mode] = count - 1
        self.server.locks.release(self, tag, mode)
        return True

    def advisory_unlock_all(self) -> str:
        held, self._session_locks = self._session_locks, {}
        for (tag, mode), count in held.items():
            self.server.locks.release(self, tag, mode, count)
        return ""
