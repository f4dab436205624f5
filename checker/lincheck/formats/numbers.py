"""Numbers as they were written, because two that differ must not be read as one."""

from __future__ import annotations

from decimal import Decimal


def exact(digits: str) -> float | Decimal:
    """Return the number as a float if that is written in the same way, else as a Decimal."""
    number = float(digits)
    written = Decimal(digits)
    return number if Decimal(repr(number)) == written else written
