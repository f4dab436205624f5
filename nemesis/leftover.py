"""Leftovers of a killed run on a node, and how to undo them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Leftover:
    """One leftover: its description, the description of its removal, and the removal."""

    what: str
    undone: str
    undo: Callable[[], object]
