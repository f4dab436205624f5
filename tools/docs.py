"""Write the tables in docs/ that are made from bundles, or check that they are up to date.

    python tools/docs.py            write them (make docs)
    python tools/docs.py --check    exit 1 and name each page that is not what would be written

A table stands between two marks, `<!-- table: NAME -->` and `<!-- end -->`, where NAME is one of
TABLES: a function that gives its rows, the first of which are the titles. What stands between the
marks is not written by hand.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from fencepost.harness.cluster import libraries as installed
from fencepost.nemesis.families import FAMILIES
from fencepost.workloads.locks.locktype import LockType
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES
from fencepost.workloads.scenarios.defects import DEFECTS, Defect
from fencepost.workloads.scenarios.registry import SUITES

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


def locks() -> Rows:
    """The locks of fencepost's own, and those broken on purpose: docs/locks.md."""
    yield "lock", "servers", "tokens", "promises", "a grant ends by", "what it is"
    for lock in LOCKS.values():
        if not lock.library:
            promises = ", ".join(lock.promised())
            tokens = ", ".join(map(_code, lock.tokens()))
            ends = _code(lock.ends_with)
            yield _code(lock.name), _servers(lock), tokens, promises, ends, lock.what


def libraries() -> Rows:
    """The libraries that are tested as they are: docs/libraries.md."""
    yield "lock", "version", "servers", "tokens", "a grant ends by", "what it is"
    for lock in LOCKS.values():
        if lock.library:
            tokens = ", ".join(map(_code, lock.tokens()))
            version, ends = installed.version(lock.library), _code(lock.ends_with)
            yield _code(lock.name), version, _servers(lock), tokens, ends, lock.what


def _servers(lock: LockType) -> str:
    return f"{lock.servers} {lock.kind}"


def guards() -> Rows:
    """The guards of a resource: docs/locks.md."""
    yield "guard", "needs", "stores", "what it does"
    for guard in GUARDS.values():
        stores = ", ".join(map(_code, guard.stores))
        yield _code(guard.name), guard.needs.given_by, stores, guard.what


def stores() -> Rows:
    """What a resource can be kept in: docs/locks.md."""
    yield "store", "what it is"
    for store in STORES.values():
        yield _code(store.name), store.what


def suites() -> Rows:
    """The suites: docs/claims.md."""
    yield "suite", "what it plays", "by"
    for suite in SUITES.values():
        yield _code(suite.name), suite.what, _code(f"make trial-{suite.name}")


def track_record() -> Rows:
    """Every defect with what came of it when it was last played, as `fencepost track-record --keep`
    has left it: docs/track-record.md."""
    kept = json.loads((DOCS / "track-record.json").read_text(encoding="utf-8"))
    known = {row["key"]: row for row in kept}
    yield "defect", "software", "versions", "issue", "shown by", "on", "last seen", "outcome"
    for defect in DEFECTS:
        for way, command in zip(defect.ways, defect.commands, strict=True):
            row = known.get(f"{defect.name}/{way.where}", {})
            versions = ", ".join(f"{name} {said}" for name, said in row.get("versions", {}).items())
            outcome = f"{row['outcome']}: {row['said']}" if row else "not played yet"
            yield (
                f"**{defect.name}**. {defect.what}", defect.software, versions, _issue(defect),
                _code(command), way.where, row.get("last_seen", ""), outcome.replace("|", "/"),
            )  # fmt: skip


def _issue(defect: Defect) -> str:
    """Where it is known in public: "etcd-io/etcd 11456", with its address."""
    if not defect.issue:
        return ""
    owner, name, _, number = defect.issue.split("/")[-4:]
    link = f"[{owner}/{name} {number}]({defect.issue})"
    return f"related: {link}" if defect.related else link


TABLES: dict[str, Callable[[], Rows]] = {
    "faults": faults,
    "locks": locks,
    "libraries": libraries,
    "guards": guards,
    "stores": stores,
    "suites": suites,
    "track-record": track_record,
}


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
