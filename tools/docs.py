"""Write the tables in docs/ that are made from bundles, or check that they are up to date.

    python tools/docs.py            write them (make docs)
    python tools/docs.py --check    exit 1 and name each page that is not what would be written

A table stands between two marks, `<!-- table: NAME -->` and `<!-- end -->`, where NAME is one of
TABLES: a function that gives its rows, the first of which are the titles. What stands between the
marks is not written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from fencepost.nemesis.families import FAMILIES

DOCS = Path(__file__).parent.parent / "docs"
_TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Rows = Iterable[Sequence[str]]


def faults() -> Rows:
    """The families of faults: docs/faults.md."""
    yield "family", "what it does", "where", "how", "receipt"
    for family in FAMILIES.values():
        where = [*map(_code, family.targets), *(["a node"] if family.strikes else [])]
        how = map(_code, family.variants)
        yield _code(family.name), family.what, ", ".join(where), ", ".join(how), family.receipt


TABLES: dict[str, Callable[[], Rows]] = {"faults": faults}


def written(page: str) -> str:
    """A page with its tables as they are to be. Raises KeyError for a table that nobody makes."""
    return _TABLE.sub(lambda found: f"{found[1]}{_markdown(TABLES[found[2]]())}{found[3]}", page)


def _code(word: str) -> str:
    return f"`{word}`"


def _markdown(rows: Rows) -> str:
    titles, *rest = rows
    lines = [titles, ["---"] * len(titles), *rest]
    # An empty cell is one space wide.
    return "".join(
        "".join(f"| {cell} ".replace("  ", " ") for cell in row) + "|\n" for row in lines
    )


def main(arguments: list[str]) -> int:
    stale = []
    for path in sorted(DOCS.glob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = written(before)
        if after != before:
            stale.append(path.name)
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    if "--check" in arguments and stale:
        print(f"not up to date: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
