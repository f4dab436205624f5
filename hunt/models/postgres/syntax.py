"""The statements and expressions of the modelled SQL, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Expr = Any
"""One of the expressions below."""


@dataclass(frozen=True)
class Literal:
    """A constant; `kind`: integer, numeric, string, boolean or null."""

    kind: str
    value: str


@dataclass(frozen=True)
class Param:
    number: int


@dataclass(frozen=True)
class Column:
    name: str
    table: str = ""


@dataclass(frozen=True)
class Star:
    table: str = ""


@dataclass(frozen=True)
class Op:
    """An operator, or one of: not, neg, is null, is not null, and, or, distinct, not distinct."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Call:
    name: str
    args: tuple[Expr, ...]
    star: bool = False


@dataclass(frozen=True)
class Cast:
    value: Expr
    type: str
    length: int = 0


@dataclass(frozen=True)
class In:
    value: Expr
    among: tuple[Expr, ...]
    negated: bool


@dataclass(frozen=True)
class Case:
    """CASE; `whens` are conditions and results."""

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr


@dataclass(frozen=True)
class Default:
    """DEFAULT, as the value of a column."""


@dataclass(frozen=True)
class Subquery:
    """A SELECT that does not depend on its surroundings; `exists`: whether it has rows."""

    select: Select
    exists: bool = False


# Statements.


@dataclass(frozen=True)
class Target:
    value: Expr
    alias: str = ""


@dataclass(frozen=True)
class Locking:
    """FOR UPDATE and the like; `strength`: 0 key share, 1 share, 2 no key update, 3 update.
    `policy`: wait, skip or nowait."""

    strength: int
    policy: str = "wait"


@dataclass(frozen=True)
class Select:
    targets: tuple[Target, ...]
    table: str = ""
    alias: str = ""
    where: Expr = None
    order: tuple[tuple[Expr, bool], ...] = ()
    limit: Expr = None
    offset: Expr = None
    locking: Locking | None = None


@dataclass(frozen=True)
class Conflict:
    """ON CONFLICT: the key's columns or the constraint's name, and the columns to update (None:
    nothing)."""

    columns: tuple[str, ...] = ()
    constraint: str = ""
    update: tuple[tuple[str, Expr], ...] | None = None
    where: Expr = None


@dataclass(frozen=True)
class Insert:
    table: str
    alias: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Expr, ...], ...]
    select: Select | None
    conflict: Conflict | None
    returning: tuple[Target, ...]


@dataclass(frozen=True)
class Update:
    table: str
    alias: str
    sets: tuple[tuple[str, Expr], ...]
    where: Expr
    returning: tuple[Target, ...]


@dataclass(frozen=True)
class Delete:
    table: str
    alias: str
    where: Expr
    returning: tuple[Target, ...]


@dataclass(frozen=True)
class ColumnDef:
    name: str
    type: str
    length: int = 0
    not_null: bool = False
    default: Expr = None
    serial: bool = False


@dataclass(frozen=True)
class CreateTable:
    """`keys`: the unique keys: a name or "", the columns, and whether it is the primary key."""

    name: str
    if_absent: bool
    columns: tuple[ColumnDef, ...]
    keys: tuple[tuple[str, tuple[str, ...], bool], ...]


@dataclass(frozen=True)
class CreateIndex:
    """A unique index, or one that matters for speed only."""

    name: str
    table: str
    columns: tuple[str, ...]
    unique: bool
    if_absent: bool


@dataclass(frozen=True)
class CreateSequence:
    name: str
    if_absent: bool
    start: int


@dataclass(frozen=True)
class Drop:
    """DROP TABLE or DROP SEQUENCE."""

    what: str
    names: tuple[str, ...]
    if_there: bool


@dataclass(frozen=True)
class Truncate:
    names: tuple[str, ...]


@dataclass(frozen=True)
class LockTable:
    names: tuple[str, ...]
    mode: int
    nowait: bool


@dataclass(frozen=True)
class Transaction:
    """BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE or ROLLBACK TO; `isolation` if one is named."""

    do: str
    name: str = ""
    isolation: str = ""
    tag: str = ""


@dataclass(frozen=True)
class Set:
    """SET, or RESET: `value` None is the default. `name` all: every setting."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True)
class Show:
    name: str


@dataclass(frozen=True)
class Utility:
    """A statement without effect on data: its tag. `deallocate`: the prepared statement to drop,
    or "*"."""

    tag: str
    deallocate: str = ""
    discard: bool = False
