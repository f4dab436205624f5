"""Random statements of several connections, for dialogues with PostgreSQL."""

from __future__ import annotations

import random
from typing import Any

CONNECTIONS = 4
Step = list[Any]


def step_of(rng: random.Random, waiting: list[int]) -> Step:
    """Draw a step of a connection that does not wait, or the end of a wait."""
    if waiting and (len(waiting) == CONNECTIONS or rng.random() < 0.12):
        # Not a drop: its backend and another one may wait for one row, and either may be next.
        return [rng.choice(waiting), "cancel"]
    number = rng.choice([n for n in range(CONNECTIONS) if n not in waiting])
    if rng.random() < 0.02:
        return [number, "drop"]
    sql, values = statement(rng)
    if values or rng.random() < 0.2:
        return [number, "extended", sql, values]
    if rng.random() < 0.06:
        sql = "; ".join([sql, statement(rng, plain=True)[0]])
    return [number, "query", sql]


def statement(rng: random.Random, plain: bool = False) -> tuple[str, list[str | None]]:
    """Return a statement with its parameters; `plain`: without parameters."""
    make = rng.choice((_transaction, _advisory, _advisory, _select, _change, _change, _other))
    sql, values = make(rng)
    return (sql, values) if not (plain and values) else ("SELECT 1", [])


def _id(rng: random.Random) -> int:
    return rng.randrange(1, 5)


def _transaction(rng: random.Random) -> tuple[str, list[str | None]]:
    return rng.choice((
        "BEGIN", "BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "END", "SAVEPOINT a",
        "SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO SAVEPOINT b", "RELEASE a", "ABORT",
        "START TRANSACTION",
    )), []  # fmt: skip


def _advisory(rng: random.Random) -> tuple[str, list[str | None]]:
    xact, shared = rng.choice(("", "xact_")), rng.choice(("", "", "_shared"))
    key = rng.choice(("1", "2", "3", "1, 1", "1, 2"))
    name = rng.choice((
        f"pg_advisory_{xact}lock{shared}", f"pg_try_advisory_{xact}lock{shared}",
        f"pg_try_advisory_{xact}lock{shared}", f"pg_advisory_unlock{shared}",
        f"pg_advisory_unlock{shared}",
    ))  # fmt: skip
    if rng.random() < 0.08:
        return "SELECT pg_advisory_unlock_all()", []
    if rng.random() < 0.3:
        values: list[str | None] = [*key.split(", ")]
        marks = ", ".join(f"${n + 1}" for n in range(len(values)))
        return f"SELECT {name}({marks})", values
    return f"SELECT {name}({key})", []


def _select(rng: random.Random) -> tuple[str, list[str | None]]:
    lock = rng.choice(("", " FOR UPDATE", " FOR UPDATE", " FOR SHARE", " FOR NO KEY UPDATE",
                       " FOR KEY SHARE"))  # fmt: skip
    lock += rng.choice(("", "", " SKIP LOCKED", " NOWAIT")) if lock else ""
    if rng.random() < 0.5:
        return f"SELECT id, owner, n FROM t WHERE id = $1{lock}", [str(_id(rng))]
    return rng.choice((
        f"SELECT id, owner, n FROM t ORDER BY id LIMIT 2{lock}",
        f"SELECT * FROM u ORDER BY a, b{lock}",
        "SELECT count(*), max(n) FROM t", "SELECT id FROM t WHERE owner IS NULL ORDER BY 1",
        f"SELECT id FROM t WHERE id IN (1, {_id(rng)}) ORDER BY id DESC{lock}",
        "SELECT exists (SELECT id FROM t WHERE id = 2)",
        "SELECT coalesce(owner, 'none') AS o FROM t ORDER BY id",
    )), []  # fmt: skip


def _change(rng: random.Random) -> tuple[str, list[str | None]]:
    key, owner = str(_id(rng)), rng.choice(("x", "y", "z"))
    returning = rng.choice(("", " RETURNING id, owner", " RETURNING id, n + 1 AS m"))
    return rng.choice((
        (f"UPDATE t SET n = n + 1 WHERE id = $1{returning}", [key]),
        (f"UPDATE t SET owner = $2, n = n + 2 WHERE id = $1 AND owner <> $2{returning}",
         [key, owner]),
        (f"UPDATE t SET id = {_id(rng)} WHERE id = {key}{returning}", []),
        (f"UPDATE t SET n = n + 1 WHERE owner = '{owner}'", []),
        (f"DELETE FROM t WHERE id = $1 AND owner = $2{returning}", [key, owner]),
        (f"DELETE FROM t WHERE id = {key}{returning}", []),
        (f"INSERT INTO t (id, owner) VALUES ({key}, '{owner}'){returning}", []),
        (f"INSERT INTO t (id, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING{returning}",
         [key, owner]),
        ("INSERT INTO t (id, owner) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET "
         f"owner = excluded.owner, n = t.n + 1 WHERE t.owner <> 'x'{returning}", [key, owner]),
        (f"INSERT INTO t VALUES ({key}, '{owner}', 5) ON CONFLICT (id) DO UPDATE SET n = 7", []),
        (f"INSERT INTO u VALUES ({key}, '{owner}') ON CONFLICT (a, b) DO NOTHING", []),
        (f"INSERT INTO u VALUES ({key}, {rng.choice(('NULL', repr(owner)))}, '{owner * 3}')", []),
        (f"INSERT INTO u VALUES (1, '{owner}', 'too long')", []),
        (f"UPDATE t SET until = now() + interval '1 hour', owner = '{owner}' "
         f"WHERE id = {key} AND (until IS NULL OR until < clock_timestamp())", []),
        ("UPDATE t SET until = now() - $2 * interval '1 second' WHERE id = $1", [key, "5"]),
        ("UPDATE t SET n = 9 WHERE id = (SELECT id FROM t WHERE n < 9 ORDER BY id LIMIT 1 "
         "FOR UPDATE SKIP LOCKED) RETURNING id, n", []),
    ))  # fmt: skip


def _other(rng: random.Random) -> tuple[str, list[str | None]]:
    return rng.choice((
        ("SELECT 1 AS one, 'a', NULL, true", []), ("SELECT 7 / 2, -7 / 2, 7 % -3, 1.5", []),
        ("SELECT 1 / 0", []), ("SELECT nope FROM t", []), ("SELECT 1 FROM nope", []),
        ("SELEC 1", []), ("", []), ("SELECT 'x'::int", []), ("SELECT 1 = 'x'", []),
        ("SELECT nope(1)", []), ("SELECT pg_try_advisory_lock('x')", []),
        ("SELECT hashtext('orders'), hashtextextended($1, 3)", ["a longer name of a lock"]),
        ("SELECT now() = transaction_timestamp(), clock_timestamp() >= now()", []),
        ("SELECT now() < now() + interval '1 ms', interval '90 minutes', '1.5 s'::interval", []),
        ("SELECT '2026-01-02 03:04:05.25+00'::timestamptz + interval '1 day 2 hours'", []),
        ("SELECT extract(epoch from interval '1 day 1.5 s')", []),
        ("SELECT $1::int + 1, $2::text || 'b'", ["41", "a"]), ("SELECT $1", ["a"]),
        ("SELECT $1 = 1, $1 > 5", ["7"]), ("SELECT $1::bigint", ["99999999999999999999"]),
        ("SHOW lock_timeout", []), ("SHOW transaction_isolation", []),
        ("SET lock_timeout = '20ms'", []), ("SET lock_timeout = 0", []),
        ("SET LOCAL lock_timeout = 30", []), ("SET statement_timeout TO 0", []),
        ("RESET lock_timeout", []), ("SELECT set_config('lock_timeout', '25', true)", []),
        ("SELECT current_setting('lock_timeout')", []), ("SELECT pg_sleep(0)", []),
        ("CREATE TABLE IF NOT EXISTS t (id int)", []), ("CREATE TABLE u (id int)", []),
        ("DROP TABLE IF EXISTS nope", []), ("DROP TABLE nope", []), ("SELECT nextval('s')", []),
        ("LOCK TABLE t IN SHARE MODE", []), ("LOCK TABLE u IN EXCLUSIVE MODE NOWAIT", []),
        ("SELECT CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END, greatest(1, 3), length('abc')", []),
        ("DISCARD ALL", []), ("DEALLOCATE ALL", []), ("SELECT max(id), min(owner) FROM t", []),
    ))  # fmt: skip
