"""Replaces datetime.date and datetime.datetime, whose methods cannot be replaced.

In a simulated client they read its wall clock, and local time is UTC. Outside of one they are as
the originals, and objects of the originals count as theirs.
"""

from __future__ import annotations

import copyreg
import datetime
from collections.abc import Iterator
from typing import Any, Self

from fencepost.hunt.intercept.clocks import seconds
from fencepost.hunt.intercept.context import here

_UTC = datetime.timezone.utc  # noqa: UP017


class _Kind(type):
    """Objects of the original are of this type, too; a subclass has its own."""

    real: type

    def __instancecheck__(cls, thing: object) -> bool:
        if "real" in cls.__dict__:
            return isinstance(thing, cls.real)
        return type.__instancecheck__(cls, thing)

    def __subclasscheck__(cls, other: type) -> bool:
        if "real" in cls.__dict__:
            return issubclass(other, cls.real)
        return type.__subclasscheck__(cls, other)


class Date(datetime.date, metaclass=_Kind):
    real = datetime.date

    @classmethod
    def today(cls) -> Self:
        return super().today() if here() is None else cls.fromtimestamp(seconds())

    @classmethod
    def fromtimestamp(cls, timestamp: float, /) -> Self:
        if here() is None:
            return super().fromtimestamp(timestamp)
        found = DateTime.fromtimestamp(timestamp, _UTC)
        return cls(found.year, found.month, found.day)


class DateTime(datetime.datetime, metaclass=_Kind):
    real = datetime.datetime

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Self:
        return super().now(tz) if here() is None else cls.fromtimestamp(seconds(), tz)

    @classmethod
    def today(cls) -> Self:
        return cls.now()

    @classmethod
    def utcnow(cls) -> Self:
        return cls.now(_UTC).replace(tzinfo=None)

    @classmethod
    def fromtimestamp(cls, timestamp: float, tz: datetime.tzinfo | None = None) -> Self:
        if tz is not None or here() is None:
            return super().fromtimestamp(timestamp, tz)
        return super().fromtimestamp(timestamp, _UTC).replace(tzinfo=None)

    def timestamp(self) -> float:
        if self.tzinfo is None and here() is not None:
            return self.replace(tzinfo=_UTC).timestamp()
        return super().timestamp()


for _stand_in, _name in ((Date, "date"), (DateTime, "datetime")):
    # Objects of both are pickled under the name of the original.
    _stand_in.__module__, _stand_in.__qualname__, _stand_in.__name__ = "datetime", _name, _name


def _reduced(thing: Any) -> tuple[Any, ...]:
    """Pickle an object of an original, whose name the replacement has now."""
    kind = DateTime if isinstance(thing, DateTime) else Date
    return kind, thing.__reduce_ex__(2)[1]


copyreg.pickle(Date.real, _reduced)
copyreg.pickle(DateTime.real, _reduced)


def places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement."""
    yield datetime, "date", Date
    yield datetime, "datetime", DateTime
