"""Porcupine's two text formats, as found in its test data.

etcd: `INFO jepsen.util - PROCESS :TYPE :F VALUE`, Jepsen's log of the register test against etcd. A
failed cas was applied and found another value than it expected, so it is an ok cas with the result
false. A failed read, and one that never completed, carry no information.

kv: EDN maps with :key, one a line, with the functions put, append and get.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fencepost.checker.lincheck.formats import edn
from fencepost.checker.lincheck.history import BadHistory

_LINE = re.compile(
    r"INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(\S.*?)\s*$"
)
_PAIR = re.compile(r"\[(-?\d+) (-?\d+)\]$")


def etcd_events(lines: Iterable[str], warn: Callable[[str], None]) -> Iterator[tuple[int, Any]]:
    """Yield (line, event) for every line of an etcd log; raise BadHistory for any other line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = _LINE.match(line)
        if match is None:
            if not line.endswith("\n"):
                warn(f"line {number} is torn and was dropped")
                return
            raise BadHistory(
                f"not `INFO jepsen.util - PROCESS :TYPE :F VALUE`: {line.strip()[:60]!r}", number
            )
        process, kind, f, text = match.groups()
        value = _etcd_value(text, number)
        if kind == "fail" and f == "cas":
            kind, value = "ok", False
        yield number, {"process": int(process), "type": kind, "f": f, "value": value}


def _etcd_value(text: str, line: int) -> int | list[int] | None:
    if text in ("nil", ":timed-out"):
        return None
    if pair := _PAIR.match(text):
        return [int(pair[1]), int(pair[2])]
    try:
        return int(text)
    except ValueError:
        raise BadHistory(f"cannot read the value {text[:40]!r}", line) from None


def kv_events(lines: Iterable[str], warn: Callable[[str], None]) -> Iterator[tuple[int, Any]]:
    """Yield (line, event) for every map; :key and :value become the value [key, value]."""
    for number, event in edn.events(lines, warn):
        if isinstance(event, dict) and event.get("process") != "nemesis":
            if "key" not in event:
                raise BadHistory("the op has no :key", number)
            event = {**event, "value": [event["key"], event.get("value")]}
        yield number, event
