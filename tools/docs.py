"""Write the generated tables in docs/, or check that they are up to date.

    python tools/docs.py            write them (make docs)
    python tools/docs.py --check    exit 1 and name each page that is out of date

A table is enclosed by `<!-- table: NAME -->` and `<!-- end -->`, where NAME is one of TABLES: a
function that returns its rows, titles first. The text between the marks is overwritten. `<!--
table: KIND:FILE:... -->` is one of MEASURED: it shows figures that tools/keep.py has stored in
docs/measured/FILE.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cells import Rows, code, markdown
from outcomes import outcomes

from fencepost.harness.campaigns.matrix import columns_of
from fencepost.harness.cluster import libraries as installed
from fencepost.nemesis.families import FAMILIES
from fencepost.report import defect_scores
from fencepost.report.defect_scores import WAYS
from fencepost.report.pages import sweep as sweeps
from fencepost.report.pages.matrix import title
from fencepost.report.words.cells import STATES, figure
from fencepost.report.words.settings import named_versions
from fencepost.workloads.contract.catalogue import catalogue
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES, keepers
from fencepost.workloads.scenarios.claim import Claim
from fencepost.workloads.scenarios.claims import CLAIMS
from fencepost.workloads.scenarios.defects import DEFECTS, Defect
from fencepost.workloads.scenarios.register.rows import NOT_SHOWN, ROWS
from fencepost.workloads.scenarios.registry import SUITES

DOCS = Path(__file__).parent.parent / "docs"
_TABLE = re.compile(r"(<!-- table: ([\w:-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def faults() -> Rows:
    """Return the families of faults: docs/faults.md."""
    yield "family", "what it does", "where", "how", "receipt"
    for family in FAMILIES.values():
        where = [*map(code, family.targets), *(["a node"] if family.strikes else [])]
        how = map(code, family.variants)
        yield code(family.name), family.what, ", ".join(where), ", ".join(how), family.receipt


def locks() -> Rows:
    """Return the built-in locks, and those broken on purpose: docs/locks.md."""
    yield "lock", "servers", "tokens", "promises", "a grant ends by", "what it is"
    for lock in LOCKS.values():
        if not lock.library:
            promises = ", ".join(lock.promised())
            tokens = ", ".join(map(code, lock.tokens()))
            ends = code(lock.ends_with)
            yield code(lock.name), _servers(lock), tokens, promises, ends, lock.what


def libraries() -> Rows:
    """Return the third-party libraries under test: docs/libraries.md."""
    yield "lock", "version", "servers", "tokens", "a grant ends by", "what it is"
    for lock in LOCKS.values():
        if lock.library:
            tokens = ", ".join(map(code, lock.tokens()))
            version, ends = installed.version(lock.library), code(lock.ends_with)
            yield code(lock.name), version, _servers(lock), tokens, ends, lock.what


def _servers(lock: LockType) -> str:
    return f"{lock.servers} {lock.kind}"


def guards() -> Rows:
    """Return the guards of a resource: docs/locks.md."""
    yield "guard", "needs", "stores", "what it does"
    for guard in GUARDS.values():
        stores = ", ".join(map(code, keepers(guard)))
        yield code(guard.name), guard.needs.given_by, stores, guard.what


def stores() -> Rows:
    """Return the backing stores of a resource: docs/locks.md."""
    yield "store", "what it is"
    for store in STORES.values():
        yield code(store.name), store.what


def suites() -> Rows:
    """Return the suites: docs/claims.md."""
    yield "suite", "what it plays", "by"
    for suite in SUITES.values():
        yield code(suite.name), suite.what, code(f"make trial-{suite.name}")


def claims(kind: str, title: str) -> Rows:
    """The claims of a kind, with the entries of suites that test each: docs/claims.md."""
    found = [claim for claim in CLAIMS.values() if claim.kind == kind]
    expects = [claim.expected for claim in found if claim.expected]
    yield "id", title, *(["expected"] if expects else []), "source", "played by"
    for claim in found:
        expected = [claim.expected] if expects else []
        yield claim.id, claim.words, *expected, claim.source, _played(claim)


def _played(claim: Claim) -> str:
    """The entries that test a claim: "redis: `late-release`, `no-ttl`; etcd: `queue`"."""
    by_suite = {
        suite.name: dict.fromkeys(
            code(entry.name) for entry in suite.entries if claim.id in entry.claims
        )
        for suite in SUITES.values()
    }
    return "; ".join(f"{suite}: {', '.join(names)}" for suite, names in by_suite.items() if names)


def no_claims() -> Rows:
    """The ids of runs that claim nothing: docs/claims.md."""
    yield "id", "meaning"
    for claim in CLAIMS.values():
        if claim.kind == "run":
            yield claim.id, claim.words


def track_record() -> Rows:
    """Return every defect with the result of its last replay, as `fencepost track-record --keep`
    stored it: docs/track-record.md."""
    kept = json.loads((DOCS / "track-record.json").read_text(encoding="utf-8"))
    known = {row["key"]: row for row in kept}
    yield "defect", "software", "versions", "issue", "shown by", "on", "last seen", "outcome"
    for defect in DEFECTS:
        for way, command in zip(defect.ways, defect.commands, strict=True):
            row = known.get(f"{defect.name}/{way.where}", {})
            versions = ", ".join(named_versions(row.get("versions") or {}))
            outcome = f"{row['outcome']}: {row['said']}" if row else "not played yet"
            yield (
                f"**{defect.name}**. {defect.what}", defect.software, versions, _issue(defect),
                code(command), way.where, row.get("last_seen", ""), outcome.replace("|", "/"),
            )  # fmt: skip


def register() -> Rows:
    """Return the defects that scripts show: docs/register.md."""
    yield "row", "software", "versions", "mended in", "impact", "thread", "seen", "script"
    for row in ROWS:
        thread = _link(row.thread) if row.thread else ""
        seen = f"{row.runs.shown} of {row.runs.of} runs, last {row.runs.last}"
        script = f"[script](../workloads/scenarios/register/scripts/{row.script.name})"
        yield (
            f"**{row.name}**. {row.happens}", row.software, ", ".join(row.versions), row.mended,
            row.impact, thread, seen, script,
        )  # fmt: skip


def register_not_shown() -> Rows:
    """Return the candidates that no script shows: docs/register.md."""
    yield "software", "defect", "tried"
    for one in NOT_SHOWN:
        yield one.software, one.what, one.tried


def defect_catalogue() -> Rows:
    """Return the catalogue of lock defects: docs/defects.md."""
    yield "defect", "the mistake", "breaks", "checker", "faults", "seen"
    for listed in catalogue().values():
        one = listed.defect
        file = f"[{one.name}](../workloads/defects/{listed.file.name})"
        checker = code(one.checker) if one.checker else f"none: {one.hidden}"
        faults = ", ".join(map(code, one.faults)) or "none"
        yield file, one.what, one.breaks, checker, faults, one.seen


def defect_results() -> Rows:
    """Return who finds which defect, as `fencepost defects --play --keep` stored it:
    docs/defects.md."""
    known = _defects_kept()
    yield "defect", *WAYS
    for name in catalogue():
        cells = known.get(name, {})
        said = (cells[way]["words"] if way in cells else "not played yet" for way in WAYS)
        yield name, *(words.replace("|", "/") for words in said)


def defect_score() -> Rows:
    """Return the score of each way: docs/defects.md."""
    known, names = _defects_kept(), list(catalogue())
    rows = [
        defect_scores.Row(name, "", "", "", {w: defect_scores.Cell(**c) for w, c in cells.items()})
        for name, cells in known.items()
        if name in names
    ]
    yield "by", "score"
    for way, score in defect_scores.scores(rows).items():
        yield way, score.words


def _defects_kept() -> dict[str, dict[str, Any]]:
    path = DOCS / "defects.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return {row["defect"]: row["cells"] for row in kept}


def own_locks() -> Rows:
    """Return what hunts at the defaults say of user locks, as `make bench-own-locks` stored it:
    docs/hunt.md."""
    yield "lock", "told as", "promise", "schedules", "seconds", "inherent, told before"
    for row in _kept("own-locks"):
        name = f"`{row['lock']}`{', its sound twin' if row['sound'] else ''}"
        promises = ", ".join(map(code, row["broken"]))
        inherent = ", ".join(words.partition(":")[0] for words in row["inherent"])
        yield name, row["told"], promises, row["schedules"], row["seconds"], inherent


def _issue(defect: Defect) -> str:
    """Return its public issue: "etcd-io/etcd 11456", with its address."""
    if not defect.issue:
        return ""
    link = _link(defect.issue)
    return f"related: {link}" if defect.related else link


def _link(issue: str) -> str:
    owner, name, _, number = issue.split("/")[-4:]
    return f"[{owner}/{name} {number}]({issue})"


TABLES: dict[str, Callable[[], Rows]] = {
    "faults": faults,
    "locks": locks,
    "libraries": libraries,
    "guards": guards,
    "stores": stores,
    "suites": suites,
    "properties": partial(claims, "property", "property"),
    "algorithms": partial(claims, "algorithm", "algorithm"),
    "claims": partial(claims, "claim", "claim"),
    "defects": partial(claims, "defect", "defect"),
    "no-claims": no_claims,
    "track-record": track_record,
    "register": register,
    "register-not-shown": register_not_shown,
    "defect-catalogue": defect_catalogue,
    "defect-results": defect_results,
    "defect-score": defect_score,
    "own-locks": own_locks,
}


def _kept(name: str) -> Any:
    return json.loads((DOCS / "measured" / f"{name}.json").read_text("utf-8"))


def sweep(name: str, question: str) -> Rows:
    """Return the map of a sweep: violating holds per 1,000, and the counts."""
    stored = _kept(name)
    plan = stored["plan"]
    cells = {(row["x"], row["y"]): row["sum"] for row in stored["cells"]}
    yield f"{plan['y']['title']} \\ {plan['x']['title']}", *plan["x"]["shown"]
    for y, shown in reversed(list(zip(plan["y"]["values"], plan["y"]["shown"], strict=True))):
        yield shown, *(_rate(cells[x, y], question) for x in plan["x"]["values"])


def _rate(total: dict[str, Any], question: str) -> str:
    found = total["violations"][question]
    if not total["holds"]:
        return "–"
    of = f"({found['count']} of {total['holds']:,})"
    if found["count"]:
        return f"**{figure(found['per_1000'])}** {of}"
    return f"? {of}" if "unknown" in total["marks"] else f"< {figure(found['at_most'])} {of}"


def frontier(name: str, question: str) -> Rows:
    """Return where a sweep begins to show violations."""
    stored = _kept(name)
    setting, fault = sorted((stored["plan"]["x"], stored["plan"]["y"]), key=lambda s: s["fault"])
    yield setting["title"], f"not seen up to a {fault['title']} of", "first seen at", "there"
    for line in sweeps.frontier(question, stored["plan"], stored["cells"]):
        above = f"; not seen at {', '.join(line['above'])}" if line["above"] else ""
        holds = f" ({line['safe_holds']:,} holds)" if line["safe"] else ""
        yield line["setting"], line["safe"] + holds, line["first"], line["rate"] + above


def matrix(name: str) -> Rows:
    """Return the states of a matrix' cells, a row per lock and guard."""
    stored = _kept(name)
    plan = stored["plan"]
    cells = {(row["lock"], row["guard"], row["fault"]): row["sum"] for row in stored["cells"]}
    yield "lock", "guard", *(title(fault, columns_of([fault])) for fault in plan["faults"])
    for lock in plan["locks"]:
        for guard in plan["guards"]:
            row = [cells[lock, guard, fault] for fault in plan["faults"]]
            yield code(lock), guard, *(" ".join(STATES[m].sign for m in s["marks"]) for s in row)


def run(name: str) -> Rows:
    """Return the size of a sweep or a matrix, its date, and its machine."""
    stored = _kept(name)
    sums = [row["sum"] for row in stored["cells"]]
    groups = stored["versions"].values()
    versions: dict[str, str] = {}
    for one in groups if all(isinstance(v, dict) for v in groups) else [stored["versions"]]:
        versions |= {kind: v for kind, v in one.items() if kind in _KINDS}
    yield "date", "runs", "holds", "seed", "servers"
    yield (
        stored["date"], f"{sum(one['runs'] for one in sums):,}",
        f"{sum(one['holds'] for one in sums):,}", str(stored["plan"]["seed"]),
        "; ".join(dict.fromkeys(versions.values())),
    )  # fmt: skip


_KINDS = {lock.kind for lock in LOCKS.values()}
MEASURED: dict[str, Callable[..., Rows]] = {
    "sweep": sweep,
    "frontier": frontier,
    "matrix": matrix,
    "run": run,
    "outcomes": lambda name: outcomes(_kept(name)),
}


def _rows(name: str) -> Rows:
    kind, _, of = name.partition(":")
    return MEASURED[kind](*of.split(":")) if of else TABLES[name]()


def written(page: str) -> str:
    """Return a page with its tables up to date. Raises KeyError for an unknown table."""
    return _TABLE.sub(lambda found: f"{found[1]}{markdown(_rows(found[2]))}{found[3]}", page)


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
