"""Analyses expressions: gives each its type, and makes a function of it.

A constant in quotes and a parameter have no type at first; they take that of their surroundings.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from fencepost.hunt.models.postgres import intervals, syntax
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.functions import FUNCTIONS, KNOWN_ELSEWHERE, VARIADIC, Function
from fencepost.hunt.models.postgres.heap import Table
from fencepost.hunt.models.postgres.operators import (
    ARITHMETIC,
    CALLS,
    COMPARES,
    compared,
    fits,
    logic,
    number_op,
    strict,
    variadic,
)
from fencepost.hunt.models.postgres.types import (
    BOOL,
    BY_NAME,
    INT4,
    INT8,
    INTERVAL,
    NUMBERS,
    NUMERIC,
    STRINGS,
    TEXT,
    UNKNOWN,
    Type,
    assignable,
    cast,
    castable,
    implicit,
)
from fencepost.hunt.models.postgres.values import Context, Typed, Value, constant, fixed
from fencepost.hunt.sim.unknown import Unknown


@dataclass
class Scope:
    """The names that an expression may use, and the types of parameters, by their number."""

    sql: str
    params: dict[int, Type]
    table: Table | None = None
    alias: str = ""
    excluded: bool = False
    subqueries: list[tuple[syntax.Subquery, list[Any]]] = field(default_factory=list)
    subquery_type: Callable[[syntax.Subquery], Type] | None = None
    folding: Context | None = None

    # Types.

    def lacks(self, what: str) -> Unknown:
        return Unknown(f"the model of PostgreSQL has no {what}: {self.sql}")

    def coerced(
        self, one: Typed, target: Type, allowed: Callable[[Type, Type], bool]
    ) -> Typed | None:
        """Return the expression in another type, or None if there is no such cast."""
        if one.param and one.type is UNKNOWN:
            known = self.params.setdefault(one.param, target)
            if known is UNKNOWN:
                known = self.params[one.param] = target
            made = self._param(one.param)
            return made if known is target else self.coerced(made, target, allowed)
        if one.given is not None:
            return Typed(target, fixed(target.read(one.given)), name=one.name)
        if one.type is UNKNOWN:  # NULL
            return Typed(target, one.value, name=one.name)
        if one.type is target:
            return one
        if not allowed(one.type, target):
            return None
        value, source = one.value, one.type
        return Typed(target, lambda c: cast(value(c), source, target), name=one.name)

    def _param(self, number: int) -> Typed:
        type_ = self.params.get(number, UNKNOWN)
        place = number - 1
        return Typed(type_, lambda c: c.params[place], param=number)

    def settled(self, one: Typed) -> Typed:
        """Return the expression with a type, text if nothing says otherwise."""
        if one.type is UNKNOWN:
            found = self.coerced(one, TEXT, implicit)
            assert found is not None
            found.name = one.name
            return found
        return one

    def condition(self, expr: syntax.Expr, where: str = "WHERE") -> Value:
        found = self.coerced(self.of(expr), BOOL, implicit)
        if found is None:
            kind = self.of(expr).type.name
            raise PgError("42804", f"argument of {where} must be type boolean, not type {kind}")
        return found.value

    def assigned(self, expr: syntax.Expr, column: Any) -> Value:
        """Return the value of a column that is stored."""
        one = self.of(expr)
        found = self.coerced(one, column.type, assignable)
        if found is None:
            raise PgError(
                "42804",
                f'column "{column.name}" is of type {column.type.name} but expression is of type '
                f"{one.type.name}",
            )
        return found.value

    # Expressions.

    def of(self, expr: syntax.Expr) -> Typed:
        """Return an expression with its type. While a plan is made (`folding`), operators on
        constants are evaluated at once, so that their errors come before the first row."""
        found = self._of(expr)
        if self.folding is not None and isinstance(expr, syntax.Op) and _is_constant(expr):
            found.value = fixed(found.value(self.folding))
        return found

    def _of(self, expr: syntax.Expr) -> Typed:
        match expr:
            case syntax.Literal():
                return _literal(expr)
            case syntax.Param(number):
                self.params.setdefault(number, UNKNOWN)
                return self._param(number)
            case syntax.Column():
                return self._column(expr)
            case syntax.Cast():
                return self._cast(expr)
            case syntax.Op():
                return self._op(expr)
            case syntax.In():
                return self._in(expr)
            case syntax.Case():
                return self._case(expr)
            case syntax.Call():
                return self._call(expr)
            case syntax.Subquery():
                return self._subquery(expr)
            case _:
                raise self.lacks(f"{type(expr).__name__.upper()} here")

    def _column(self, expr: syntax.Column) -> Typed:
        table = self.table
        name = f"{expr.table}.{expr.name}" if expr.table else f'"{expr.name}"'
        if expr.table == "excluded" and self.excluded and table is not None:
            place = table.place(expr.name)
            if place >= 0:
                return Typed(table.columns[place].type, lambda c: c.excluded[place], name=expr.name)
        elif table is not None and expr.table in ("", self.alias or table.name):
            place = table.place(expr.name)
            if place >= 0:
                type_ = table.columns[place].type
                return Typed(type_, lambda c: c.row[place], origin=place + 1, name=expr.name)
        elif expr.table:
            raise PgError("42P01", f'missing FROM-clause entry for table "{expr.table}"')
        if expr.name in ("ctid", "xmin", "xmax", "tableoid"):
            raise self.lacks(f"column {expr.name}")
        raise PgError("42703", f"column {name} does not exist")

    def _cast(self, expr: syntax.Cast) -> Typed:
        target = BY_NAME[expr.type]
        one = self.of(expr.value)
        made = self.coerced(one, target, castable)
        if made is None:
            raise PgError("42846", f"cannot cast type {one.type.name} to {target.name}")
        made.name = one.name if one.name != "?column?" else _column_name(expr.type)
        if expr.length:
            inner, length = made.value, expr.length
            made.value = lambda c: _cut(inner(c), length)
        return made

    def _in(self, expr: syntax.In) -> Typed:
        tests = tuple(syntax.Op("=", (expr.value, one)) for one in expr.among)
        found: syntax.Expr = tests[0]
        for one in tests[1:]:
            found = syntax.Op("or", (found, one))
        return self.of(syntax.Op("not", (found,)) if expr.negated else found)

    def _case(self, expr: syntax.Case) -> Typed:
        whens = [(self.condition(when, "CASE/WHEN"), self.of(then)) for when, then in expr.whens]
        results, type_ = self._alike(
            [then for _, then in whens] + [self.of(expr.otherwise)], "CASE"
        )
        tests = [when for when, _ in whens]

        def value(c: Context) -> Any:
            for test, result in zip(tests, results, strict=False):
                if test(c) is True:
                    return result.value(c)
            return results[-1].value(c)

        return Typed(type_, value, name="case")

    def _alike(self, ones: list[Typed], where: str) -> tuple[list[Typed], Type]:
        """Return expressions in a common type."""
        type_ = UNKNOWN
        for one in ones:
            if one.type is UNKNOWN or implicit(one.type, type_):
                continue
            if type_ is not UNKNOWN and not implicit(type_, one.type):
                words = f"{where} types {type_.name} and {one.type.name} cannot be matched"
                raise PgError("42804", words)
            type_ = one.type
        type_ = TEXT if type_ is UNKNOWN else type_
        made = [self.coerced(one, type_, implicit) for one in ones]
        return [one for one in made if one is not None], type_

    def _subquery(self, expr: syntax.Subquery) -> Typed:
        if self.subquery_type is None:
            raise self.lacks("subquery here")
        type_ = BOOL if expr.exists else self.subquery_type(expr)
        slot: list[Any] = [None]
        self.subqueries.append((expr, slot))
        return Typed(type_, lambda c: slot[0], name="exists" if expr.exists else "?column?")

    # Calls.

    def _call(self, expr: syntax.Call) -> Typed:
        if expr.name in VARIADIC:
            ones, type_ = self._alike([self.of(one) for one in expr.args], expr.name.upper())
            values = [one.value for one in ones]
            return Typed(type_, variadic(expr.name, values), name=expr.name)
        args = [self.of(one) for one in expr.args]
        if any(one.waits for one in args):
            raise self.lacks("expression of a call that waits")
        function = self._chosen(expr.name, args)
        made = [self.coerced(one, t, implicit) for one, t in zip(args, function.args, strict=True)]
        known = tuple(one for one in made if one is not None)
        values, call, strict = [one.value for one in known], function.call, function.strict

        def value(c: Context) -> Any:
            given = [one(c) for one in values]
            if strict and None in given:
                return None
            return call(c.session, *given)

        name = expr.name.partition(" ")[0]
        waits = (function, known) if function.waits else None
        return Typed(function.returns, value, waits=waits, name=name)

    def _chosen(self, name: str, args: list[Typed]) -> Function:
        fits = [
            one
            for one in FUNCTIONS.get(name, ())
            if len(one.args) == len(args)
            and all(
                a.type is UNKNOWN or implicit(a.type, t)
                for a, t in zip(args, one.args, strict=True)
            )
        ]
        exact = [
            one for one in fits
            if all(a.type is t for a, t in zip(args, one.args, strict=True))
        ]  # fmt: skip
        if fits:
            return (exact or fits)[0]
        if name not in FUNCTIONS and KNOWN_ELSEWHERE.match(name):
            raise self.lacks(f"function {name}")
        kinds = ", ".join(one.type.name for one in args)
        raise PgError("42883", f"function {name}({kinds}) does not exist")

    # Operators.

    def _op(self, expr: syntax.Op) -> Typed:
        name = expr.name
        if name in ("and", "or", "not"):
            parts = [self.condition(one, name.upper()) for one in expr.args]
            return Typed(BOOL, logic(name, parts))
        args = [self.of(one) for one in expr.args]
        if name in ("is null", "is not null"):
            value = self.settled(args[0]).value
            wanted = name == "is null"
            return Typed(BOOL, lambda c: (value(c) is None) is wanted)
        if name == "neg":
            return self._negative(args[0])
        left, right = args
        if name in ("distinct", "not distinct"):
            one, other = self._same(left, right, "=")
            wanted = name == "not distinct"
            return Typed(BOOL, lambda c: (one.value(c) == other.value(c)) is wanted)
        if name in COMPARES:
            one, other = self._same(left, right, name)
            return Typed(BOOL, compared(name, one, other))
        if name == "||":
            return self._joined(left, right)
        return self._arithmetic(name, left, right)

    def _none(self, name: str, left: Typed, right: Typed) -> PgError:
        words = f"operator does not exist: {left.type.name} {name} {right.type.name}"
        return PgError("42883", words)

    def _negative(self, one: Typed) -> Typed:
        if one.type is INTERVAL:
            value = one.value
            return Typed(INTERVAL, strict(lambda v: intervals.times(v, -1), value))
        if one.type not in NUMBERS:
            raise self.lacks("this minus")
        return Typed(one.type, strict(operator.neg, one.value))

    def _same(self, left: Typed, right: Typed, name: str) -> tuple[Typed, Typed]:
        """Return both in the type in which they are compared."""
        if left.type is UNKNOWN and right.type is UNKNOWN:
            target = TEXT
        elif left.type is UNKNOWN or implicit(left.type, right.type):
            target = right.type
        else:
            target = left.type
        if target in STRINGS:
            target = TEXT if target.name != "name" else target
        one = self.coerced(left, target, implicit)
        other = self.coerced(right, target, implicit)
        if one is None or other is None:
            raise self._none(name, left, right)
        return one, other

    def _joined(self, left: Typed, right: Typed) -> Typed:
        if left.type not in (*STRINGS, UNKNOWN) and right.type not in (*STRINGS, UNKNOWN):
            raise self._none("||", left, right)
        both = [self.coerced(one, TEXT, assignable) for one in (left, right)]
        one, other = (made.value for made in both if made is not None)
        return Typed(TEXT, strict(operator.add, one, other))

    def _arithmetic(self, name: str, left: Typed, right: Typed) -> Typed:
        for first, second, result in ARITHMETIC.get(name, ()):
            if fits(left, first, right) and fits(right, second, left):
                one = self.coerced(left, first, implicit)
                other = self.coerced(right, second, implicit)
                if one is not None and other is not None:
                    call = CALLS[name, first, second]
                    return Typed(result, strict(call, one.value, other.value))
        kinds = [one.type for one in (left, right) if one.type in NUMBERS]
        if not kinds or any(one.type not in (*NUMBERS, UNKNOWN) for one in (left, right)):
            raise self._none(name, left, right)
        target = max(kinds, key=NUMBERS.index)
        ones = [self.coerced(one, target, implicit) for one in (left, right)]
        values = [made.value for made in ones if made is not None]
        return Typed(target, strict(number_op(name, target), *values))


def _column_name(type_: str) -> str:
    return {"int": "int4", "integer": "int4", "bigint": "int8", "smallint": "int2",
            "boolean": "bool", "double precision": "float8", "float": "float8",
            "character varying": "varchar", "decimal": "numeric",
            "timestamp with time zone": "timestamptz"}.get(type_, type_)  # fmt: skip


def _is_constant(expr: Any) -> bool:
    match expr:
        case syntax.Literal() | syntax.Param():
            return True
        case syntax.Op(args=args):
            return all(map(_is_constant, args))
        case syntax.Cast(value=value):
            return _is_constant(value)
        case _:
            return False


def _literal(expr: syntax.Literal) -> Typed:
    match expr.kind:
        case "integer":
            number = int(expr.value)
            if number >= 1 << 63:
                return constant(Decimal(number), NUMERIC)
            return constant(number, INT4 if number < 1 << 31 else INT8)
        case "numeric":
            return constant(Decimal(expr.value), NUMERIC)
        case "boolean":
            return constant(expr.value == "true", BOOL)
        case "null":
            return Typed(UNKNOWN, fixed(None))
        case _:
            return Typed(UNKNOWN, fixed(expr.value), given=expr.value)


def _cut(value: Any, length: int) -> Any:
    return value if value is None else value[:length]
