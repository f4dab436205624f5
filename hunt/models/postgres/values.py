"""Analysed expressions: a type, and a function of the surroundings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.hunt.models.postgres.functions import Function
from fencepost.hunt.models.postgres.types import Type


class Context:
    """The surroundings of an expression: the session, and a row of its table. `rows`: the rows of
    the statement's result so far."""

    __slots__ = ("excluded", "params", "row", "rows", "session")

    def __init__(self, session: Any, params: Sequence[Any]) -> None:
        self.session = session
        self.params = params
        self.row: tuple[Any, ...] = ()
        self.excluded: tuple[Any, ...] = ()
        self.rows: list[tuple[Any, ...]] = []


Value = Callable[[Context], Any]


@dataclass
class Typed:
    """An expression with its type. `param`: a parameter without a type yet; `given`: a constant
    without one. `waits`: the arguments of a call that may wait. `origin`: the number of the
    column that it is; `name`: how a result is named."""

    type: Type
    value: Value
    param: int = 0
    given: str | None = None
    waits: tuple[Function, tuple[Typed, ...]] | None = None
    origin: int = 0
    name: str = "?column?"


def constant(value: Any, type: Type) -> Typed:
    return Typed(type, lambda c: value)


def fixed(value: Any) -> Value:
    return lambda c: value
