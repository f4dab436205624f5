"""Executes the statements that define tables and change settings; each returns its tag."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencepost.hunt.models.postgres import syntax
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.heap import Key, Sequence_, Table, TableColumn
from fencepost.hunt.models.postgres.locks import Waits
from fencepost.hunt.models.postgres.types import BY_NAME


def execute(session: Any, asked: Any) -> Waits:
    match asked:
        case syntax.Set():
            if asked.local and session.block == "I" and not session.implicit:
                words = "SET LOCAL can only be used in transaction blocks"
                session.notice("WARNING", "25P01", words)
            session.configure(asked.name, asked.value, asked.local)
            return "SET" if asked.value is not None else "RESET"
        case syntax.CreateTable():
            return (yield from _create_table(session, asked))
        case syntax.CreateIndex():
            return (yield from _create_index(session, asked))
        case syntax.CreateSequence():
            return (yield from _create_sequence(session, asked))
        case syntax.Drop():
            return (yield from _drop(session, asked))
        case syntax.Truncate():
            return (yield from _truncate(session, asked))
        case syntax.LockTable():
            return (yield from _lock(session, asked))
        case _:
            return _utility(session, asked)


def _utility(session: Any, asked: syntax.Utility) -> str:
    if asked.discard:
        if session.block != "I" or session.implicit:
            raise PgError("25001", "DISCARD ALL cannot run inside a transaction block")
        session.settings.reset()
        session.advisory_unlock_all()
    if asked.deallocate == "*":
        session.prepared.clear()
    elif asked.deallocate and session.prepared.pop(asked.deallocate, None) is None:
        raise PgError("26000", f'prepared statement "{asked.deallocate}" does not exist')
    return asked.tag


def _free(session: Any, name: str, if_absent: bool) -> Waits:
    """Wait for a transaction that creates or drops this name; return whether it is free."""
    server = session.server
    session.assign()
    while (other := server.relations.get(name)) is not None:
        creator = other.creator
        if creator is not None and creator.running and creator.top is not session.top:
            yield from session.wait_for(creator)
            if server.relations.get(name) is other:
                words = 'duplicate key value violates unique constraint "pg_type_typname_nsp_index"'
                raise PgError("23505", words)
            continue
        if if_absent:
            session.notice("NOTICE", "42P07", f'relation "{name}" already exists, skipping')
            return False
        raise PgError("42P07", f'relation "{name}" already exists')
    return True


def _add(session: Any, name: str, made: Any) -> None:
    relations = session.server.relations
    relations[name] = made

    def undo() -> None:
        if relations.get(name) is made:
            del relations[name]

    session.xact.undo.append(undo)


def _create_table(session: Any, asked: syntax.CreateTable) -> Waits:
    if not (yield from _free(session, asked.name, asked.if_absent)):
        return "CREATE TABLE"
    primary = {name for _, names, is_primary in asked.keys if is_primary for name in names}
    columns = []
    for one in asked.columns:
        default = one.default
        if one.serial:
            sequence = f"{asked.name}_{one.name}_seq"
            session.server.sequences[sequence] = Sequence_(sequence)
            default = syntax.Call("nextval", (syntax.Literal("string", sequence),))
        columns.append(
            TableColumn(
                one.name,
                BY_NAME[one.type],
                one.length,
                one.not_null or one.name in primary,
                default,
            )
        )
    table = Table(asked.name, tuple(columns), [], session.server.next_oid(), session.xact)
    for label, names, is_primary in asked.keys:
        _add_key(table, label, names, is_primary)
    _add(session, asked.name, table)
    yield from session.lock_table(table, 8)
    return "CREATE TABLE"


def _add_key(table: Table, label: str, names: tuple[str, ...], primary: bool) -> None:
    for name in names:
        if table.place(name) < 0:
            raise PgError("42703", f'column "{name}" named in key does not exist')
    middle = "_".join(names)
    name = label or (f"{table.name}_pkey" if primary else f"{table.name}_{middle}_key")
    table.keys.append(Key(name, tuple(table.place(one) for one in names), primary))


def _create_index(session: Any, asked: syntax.CreateIndex) -> Waits:
    table = session.server.table(session, asked.table)
    yield from session.lock_table(table, 5)
    for name in asked.columns:
        if table.place(name) < 0:
            raise PgError("42703", f'column "{name}" does not exist')
    name = asked.name or f"{table.name}_{'_'.join(asked.columns)}_idx"
    if any(key.name == name for key in table.keys):
        if asked.if_absent:
            session.notice("NOTICE", "42P07", f'relation "{name}" already exists, skipping')
            return "CREATE INDEX"
        raise PgError("42P07", f'relation "{name}" already exists')
    if asked.unique:
        key = Key(name, tuple(table.place(one) for one in asked.columns))
        table.keys.append(key)
        session.xact.undo.append(lambda: table.keys.remove(key))
    return "CREATE INDEX"


def _create_sequence(session: Any, asked: syntax.CreateSequence) -> Waits:
    sequences = session.server.sequences
    if asked.name in sequences:
        if asked.if_absent:
            words = f'relation "{asked.name}" already exists, skipping'
            session.notice("NOTICE", "42P07", words)
            return "CREATE SEQUENCE"
        raise PgError("42P07", f'relation "{asked.name}" already exists')
    sequences[asked.name] = Sequence_(asked.name, asked.start - 1)
    session.xact.undo.append(lambda: sequences.pop(asked.name, None))
    return "CREATE SEQUENCE"
    yield


def _drop(session: Any, asked: syntax.Drop) -> Waits:
    server = session.server
    for name in asked.names:
        found = server.relations if asked.what == "table" else server.sequences
        if name not in found:
            if not asked.if_there:
                raise PgError("42P01", f'{asked.what} "{name}" does not exist')
            session.notice("NOTICE", "00000", f'{asked.what} "{name}" does not exist, skipping')
            continue
        one = found[name]
        if asked.what == "table":
            yield from session.lock_table(one, 8)
        if found.get(name) is one:
            del found[name]
            session.xact.undo.append(_again(found, name, one))
    return f"DROP {asked.what.upper()}"


def _again(found: dict[str, Any], name: str, one: Any) -> Callable[[], None]:
    def undo() -> None:
        found[name] = one

    return undo


def _truncate(session: Any, asked: syntax.Truncate) -> Waits:
    for name in asked.names:
        table = session.server.table(session, name)
        yield from session.lock_table(table, 8)
        session.assign()
        versions, table.versions = table.versions, []

        def undo(t: Table = table, old: Any = versions) -> None:
            t.versions = old

        session.xact.undo.append(undo)
    return "TRUNCATE TABLE"


def _lock(session: Any, asked: syntax.LockTable) -> Waits:
    if session.block == "I" and not session.implicit:
        raise PgError("25P01", "LOCK TABLE can only be used in transaction blocks")
    for name in asked.names:
        table = session.server.table(session, name)
        yield from session.lock_table(table, asked.mode, asked.nowait)
    return "LOCK TABLE"
