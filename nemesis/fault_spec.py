"""Parses `--nemesis`: families of faults by name, their targets, variants and frequency.

    FAMILY[:TARGET][/VARIANT][@INTERVAL][=WEIGHT]      partition:primary/reject@10s=2

Entries are separated by commas. TARGET is a node or a name that the family knows (`fencepost
nemesis list`). Entries of one family take turns by weight; one with its own interval runs
independently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.times import seconds

_ENTRY = re.compile(
    r"(?P<family>[a-z][\w-]*)(:(?P<target>[\w-]+))?(/(?P<variant>[\w.+-]+))?"
    r"(@(?P<interval>[\w.]+))?(=(?P<weight>[\w.]+))?"
)


@dataclass(frozen=True)
class Asked:
    """One entry. `interval_s` None: the test's; target and variant "": the family's default."""

    family: str
    target: str = ""
    variant: str = ""
    interval_s: float | None = None
    weight: float = 1.0
    text: str = ""


def parse(text: str) -> Asked:
    """Parse one entry; `families.check` checks whether its family, target and variant exist.

    Raises:
        ValueError: it is malformed.
    """
    match = _ENTRY.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"{text!r} cannot be read: write FAMILY[:TARGET][/VARIANT][@INTERVAL][=WEIGHT], for "
            "example partition:primary@10s"
        )
    weight = match["weight"] or "1"
    try:
        number = float(weight)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1000:
        raise ValueError(f"{text!r}: weight {weight} is out of range (above 0, up to 1000)")
    try:
        interval_s = seconds(match["interval"]) if match["interval"] else None
    except ValueError as error:
        raise ValueError(f"{text!r}: the interval {error}") from error
    return Asked(
        match["family"],
        match["target"] or "",
        match["variant"] or "",
        interval_s,
        number,
        text.strip(),
    )


def families(entries: Iterable[str]) -> list[str]:
    """The families that entries name, each once."""
    return list(dict.fromkeys(re.split("[:/@=]", entry.strip())[0] for entry in entries))
