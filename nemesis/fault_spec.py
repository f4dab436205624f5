"""What `--nemesis` asks for: families of faults by name, where they strike, how, how often.

    FAMILY[:TARGET][/VARIANT][@INTERVAL][=WEIGHT]      partition:primary/reject@10s=2

Entries are separated by commas. TARGET is a node or a name that the family knows
(`fencepost nemesis list`). Entries of one family take turns, each as often as its weight says; one
with an interval of its own goes its own way.
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
    """One entry. `interval_s` None: the test's; the target and the variant "": the family's."""

    family: str
    target: str = ""
    variant: str = ""
    interval_s: float | None = None
    weight: float = 1.0
    text: str = ""


def parse(text: str) -> Asked:
    """One entry; whether its family, target and variant exist is for `families.check` to say.

    Raises:
        ValueError: it is not written as above.
    """
    match = _ENTRY.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"{text!r} cannot be read: write FAMILY[:TARGET][/VARIANT][@INTERVAL][=WEIGHT], "
            "partition:primary@10s say"
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
