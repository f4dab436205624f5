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
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fencepost.checker.checkers import CHECKERS
from fencepost.harness.campaigns.bench import BASELINE
from fencepost.harness.campaigns.matrix import columns_of
from fencepost.harness.cluster import libraries as installed
from fencepost.nemesis.families import FAMILIES
from fencepost.report import defect_scores
from fencepost.report.defect_scores import WAYS
from fencepost.report.pages import suite as suite_page
from fencepost.report.pages import sweep as sweeps
from fencepost.report.pages.matrix import title
from fencepost.report.words.cells import STATES, figure
from fencepost.report.words.settings import named_versions
from fencepost.workloads.contract.catalogue import catalogue
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES, keepers
from fencepost.workloads.scenarios.claim import EXPLORATION, Claim
from fencepost.workloads.scenarios.claims import CLAIMS
from fencepost.workloads.scenarios.defects import DEFECTS, Defect
from fencepost.workloads.scenarios.register.rows import NOT_SHOWN, ROWS
from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.suite import Cost, Entry, TimedRun

DOCS = Path(__file__).parent.parent / "docs"
_TABLE = re.compile(r"(<!-- table: ([\w:-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Rows = Iterable[Sequence[str]]


def faults() -> Rows:
    """Return the families of faults: docs/faults.md."""
    yield "family", "what it does", "where", "how", "receipt"
    for family in FAMILIES.values():
        where = [*map(_code, family.targets), *(["a node"] if family.strikes else [])]
        how = map(_code, family.variants)
        yield _code(family.name), family.what, ", ".join(where), ", ".join(how), family.receipt


def locks() -> Rows:
    """Return the built-in locks, and those broken on purpose: docs/locks.md."""
    yield "lock", "servers", "tokens", "promises", "a grant ends by", "what it is"
    for lock in LOCKS.values():
        if not lock.library:
            promises = ", ".join(lock.promised())
            tokens = ", ".join(map(_code, lock.tokens()))
            ends = _code(lock.ends_with)
            yield _code(lock.name), _servers(lock), tokens, promises, ends, lock.what


def libraries() -> Rows:
    """Return the third-party libraries under test: docs/libraries.md."""
    yield "lock", "version", "servers", "tokens", "a grant ends by", "what it is"
    for lock in LOCKS.values():
        if lock.library:
            tokens = ", ".join(map(_code, lock.tokens()))
            version, ends = installed.version(lock.library), _code(lock.ends_with)
            yield _code(lock.name), version, _servers(lock), tokens, ends, lock.what


def _servers(lock: LockType) -> str:
    return f"{lock.servers} {lock.kind}"


def guards() -> Rows:
    """Return the guards of a resource: docs/locks.md."""
    yield "guard", "needs", "stores", "what it does"
    for guard in GUARDS.values():
        stores = ", ".join(map(_code, keepers(guard)))
        yield _code(guard.name), guard.needs.given_by, stores, guard.what


def stores() -> Rows:
    """Return the backing stores of a resource: docs/locks.md."""
    yield "store", "what it is"
    for store in STORES.values():
        yield _code(store.name), store.what


def suites() -> Rows:
    """Return the suites: docs/claims.md."""
    yield "suite", "what it plays", "by"
    for suite in SUITES.values():
        yield _code(suite.name), suite.what, _code(f"make trial-{suite.name}")


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
            _code(entry.name) for entry in suite.entries if claim.id in entry.claims
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
                _code(command), way.where, row.get("last_seen", ""), outcome.replace("|", "/"),
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
        checker = _code(one.checker) if one.checker else f"none: {one.hidden}"
        faults = ", ".join(map(_code, one.faults)) or "none"
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
        promises = ", ".join(map(_code, row["broken"]))
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
            yield _code(lock), guard, *(" ".join(STATES[m].sign for m in s["marks"]) for s in row)


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


def outcomes(name: str) -> Rows:
    """Return the results of each entry of a suite that expects or counts something:
    docs/claims.md."""
    yield "claim", "entry", "guard", "expected", "seen", "on", "again"
    entries = [
        (suite.name, entry)
        for suite in SUITES.values()
        for entry in suite.entries
        if EXPLORATION not in entry.claims
    ]
    for suite, entry in sorted(entries, key=lambda found: _place(found[1])):
        guard = "" if isinstance(entry, Cost) else entry.guard
        rows = [row for row in _kept(name) if _is_of(row, suite, entry)]
        versions = dict.fromkeys(
            one for row in rows for one in named_versions(row.get("versions") or {})
        )
        again = f"fencepost suite {suite} --only {entry.name}"
        yield (
            entry.claim, f"{suite}: {_code(entry.name)}", guard, _expected(entry),
            _seen(rows).replace("|", "/"), ", ".join(versions), _code(again),
        )  # fmt: skip


def _is_of(row: Mapping[str, Any], suite: str, entry: Entry) -> bool:
    """Return whether this was stored for the entry, with its current expectation."""
    if (row["suite"], row["scenario"]) != (suite, entry.name):
        return False
    if isinstance(entry, Cost):
        return True
    if row["guard"] != entry.guard:
        return False
    kept = row.get("expected", {})
    if isinstance(entry, TimedRun) and entry.calm:
        # A checker that is newer than the run, or gone, does not affect the other verdicts.
        ours = {name: valid for name, valid in kept.items() if name in CHECKERS}
        return bool(ours) and ours == {name: CHECKERS[name].control for name in ours}
    return bool(kept == dict(entry.expected))


def _place(entry: Entry) -> tuple[int, str]:
    """Return the entry's position: that of the first of its claims; controls at the end."""
    return list(CLAIMS).index(entry.claims[0]), entry.claim


def _expected(entry: Entry) -> str:
    if isinstance(entry, Cost):
        return f"each slower than {_code(BASELINE)}. {entry.published}"
    if isinstance(entry, TimedRun) and entry.rate:
        return entry.rate.published
    calm = isinstance(entry, TimedRun) and entry.calm
    return _verdicts(entry.expected) if entry.expected or calm else "nothing: explored"


def _verdicts(valid: Mapping[str, Any]) -> str:
    short = {False: "F", "unknown": "unknown"}
    odd = [f"{_code(name)} {short[v]}" for name, v in valid.items() if v is not True]
    return ", ".join(odd) + "; all else T" if odd else "all T"


def _seen(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe the results: of a scenario, how many runs were as expected, and the others; without
    an expectation, the verdicts of each run; of rates and costs, the figures."""
    if not rows:
        return "no run kept yet"
    if "observed" in rows[0] and "expected" not in rows[0]:
        return ". ".join(f"Seed {row['seeds'][0]}: {_verdicts(row['observed'])}" for row in rows)
    if "expected" not in rows[0]:
        return " ".join(map(_figures, rows))
    good = sum(row["as_expected"] for row in rows)
    odd = [f"Seed {row['seeds'][0]}: {row['why']}" for row in rows if not row["as_expected"]]
    seeds = ", ".join(str(row["seeds"][0]) for row in rows)
    summary = f"as expected, {good} of {len(rows)} runs (seed{'s' * (len(rows) > 1)} {seeds})"
    return ". ".join([summary, *odd])


def _figures(row: Mapping[str, Any]) -> str:
    if "rate" in row:
        over = f"Seeds {row['seeds'][0]} to {row['seeds'][-1]}:"
        return " ".join([over, *suite_page.shares(row["rate"]), row.get("why", "")]).strip()
    base, *others = row["cost"]["locks"]
    costs = [_cost(base), *(f"{_cost(o)}, {figure(o['ms'] / base['ms'])} times" for o in others)]
    return f"{row['date']}: {'; '.join(costs)}."


def _cost(lock: Mapping[str, Any]) -> str:
    rate = f", {lock['rate']:,.0f} a second" if lock.get("rate") else ""
    return f"{_code(lock['lock'])} {lock['ms']:.3g} ms in {lock['trips']:g} round trips{rate}"


_KINDS = {lock.kind for lock in LOCKS.values()}
MEASURED: dict[str, Callable[..., Rows]] = {
    "sweep": sweep,
    "frontier": frontier,
    "matrix": matrix,
    "run": run,
    "outcomes": outcomes,
}


def _rows(name: str) -> Rows:
    kind, _, of = name.partition(":")
    return MEASURED[kind](*of.split(":")) if of else TABLES[name]()


def written(page: str) -> str:
    """Return a page with its tables up to date. Raises KeyError for an unknown table."""
    return _TABLE.sub(lambda found: f"{found[1]}{_markdown(_rows(found[2]))}{found[3]}", page)


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
