"""The cells and rows of a generated table (docs.py), in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Rows = Iterable[Sequence[str]]
"""The rows of a table, titles first."""


def code(word: str) -> str:
    return f"`{word}`"


def markdown(rows: Rows) -> str:
    titles, *rest = rows
    lines = [titles, ["---"] * len(titles), *rest]
    # An empty cell is one space wide.
    return "".join(
        "".join(f"| {cell} ".replace("  ", " ") for cell in row) + "|\n" for row in lines
    )
