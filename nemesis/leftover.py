"""What a run that was killed left on a node, and how it is undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Leftover:
    """One thing that was left: what it is, what undoing it is called, and how it is undone."""

    what: str
    undone: str
    undo: Callable[[], object]
