"""The baseline: the known outcomes of a nightly run's entries, and how new outcomes differ.

baseline.json is kept with the code. It is sorted and has a few lines per entry, so that its diff
shows which outcomes changed. It is written from nightly runs that a person has reviewed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from fencepost import plainfile
from fencepost.atomic_write import replace
from fencepost.harness.campaigns.outcomes import CALM, UNKNOWN, Entry
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.report.words.cells import STATES
from fencepost.strictjson import decode

SCHEMA = 1
FILE = Path("docs/baseline.json")
_AS_PUBLISHED = ("as published", "seen")
# Two clients held the lock and the data survived: less than damage, which takes two as well.
_LESS_THAN = {STATES["damaged"].word: STATES["believed"].word}


class Known(msgspec.Struct):
    """`marks` that an entry may have; if its schedule is fixed, those that it must have. The other
    fields describe the latest nightly run that it was taken from."""

    marks: list[str]
    night: str = ""
    seed: int | None = None
    run: str = ""
    said: str = ""


class _File(msgspec.Struct):
    schema: int
    entries: dict[str, Known]


def read(path: Path) -> dict[str, Known]:
    """Read the baseline; return it by entry.

    Raises:
        BadArguments: the file does not exist, or is not a baseline.
    """
    try:
        found = msgspec.convert(decode(plainfile.read(path)), _File)
        if found.schema != SCHEMA:
            raise ValueError(f"its schema is {found.schema}, and not {SCHEMA}")
    except FileNotFoundError as error:
        raise BadArguments(
            f"the baseline {path} does not exist: name it with --baseline, or create one with "
            "`fencepost nightly baseline NIGHT`"
        ) from error
    except (OSError, ValueError) as error:
        raise BadArguments(f"the baseline {path} cannot be used: {error}") from error
    return found.entries


def write(path: Path, known: dict[str, Known]) -> None:
    """Write the baseline. Raise Crashed if it cannot be written."""
    rows = {key: msgspec.to_builtins(known[key]) for key in sorted(known)}
    text = json.dumps({"schema": SCHEMA, "entries": rows}, indent=1, ensure_ascii=False)
    try:
        replace(path, [text.encode(), b"\n"])
    except OSError as error:
        raise Crashed(f"the baseline {path} cannot be written: {error.strerror}") from error


def judge(entries: Iterable[Entry], known: dict[str, Known]) -> None:
    """Fill in `state` and `known` of each entry."""
    for one in entries:
        before = known.get(one.key)
        one.known = msgspec.to_builtins(before) if before else {}
        one.state = _state(one, before)


def _state(one: Entry, before: Known | None) -> str:
    if one.crashed:
        return "crashed"
    if not one.marks:
        return "not run"
    if UNKNOWN in one.marks and (one.sure or not _news(one, before)):
        return UNKNOWN
    if before is None:
        # A published outcome is known, even if no nightly run has shown it yet.
        return "changed" if one.sure and one.marks[0] not in _AS_PUBLISHED else "new"
    if one.sure:
        return "same" if set(one.marks) == set(before.marks) else "changed"
    if _news(one, before):
        return "changed"
    return (
        "same" if set(before.marks) - CALM - {UNKNOWN} <= set(one.marks) else "not seen this time"
    )


def _news(one: Entry, before: Known | None) -> set[str]:
    """Return the marks that are new, without those milder than a known one; none without a
    baseline."""
    if before is None:
        return set()
    less = {_LESS_THAN[mark] for mark in before.marks if mark in _LESS_THAN}
    return set(one.marks) - set(before.marks) - less - CALM - {UNKNOWN}


def is_known_unknown(one: Entry) -> bool:
    """Return whether the entry was unknown before, so that there is no need to look again."""
    return one.state == UNKNOWN and UNKNOWN in one.known.get("marks", ())


def red(entries: Iterable[Entry]) -> int:
    """Return the exit code of a nightly run: 1 if an outcome changed, 2 if an entry crashed or is
    unknown for the first time, else 0."""
    found = list(entries)
    if any(one.state == "changed" for one in found):
        return 1
    bad = (one.state == "crashed" or (one.state == UNKNOWN and not is_known_unknown(one))
           for one in found)  # fmt: skip
    return 2 if any(bad) else 0


def merged(
    known: dict[str, Known], entries: Iterable[Entry], night: str, seed: int | None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Add outcomes to the baseline; yield each entry that changes, with its marks before and after.
    Entries that crashed or did not run leave the baseline as it is."""
    for one in entries:
        if one.crashed or not one.marks:
            continue
        before = known.get(one.key)
        marks = list(one.marks)
        if one.sure and marks == [UNKNOWN] and before:
            marks = [*(mark for mark in before.marks if mark != UNKNOWN), UNKNOWN]
        elif not one.sure and before:
            marks = sorted({*before.marks, *marks})
        if before is None or set(before.marks) != set(marks):
            yield one.key, list(before.marks) if before else [], marks
            known[one.key] = Known(marks, night, seed, one.run, one.said)
