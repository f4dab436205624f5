"""fencepost's own history.jsonl: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

from fencepost.checker.lincheck.formats.numbers import exact
from fencepost.checker.lincheck.history import BadHistory
from fencepost.strictjson import DECODER as STRICT


def _exact(digits: str) -> float | Decimal:
    STRICT.parse_float(digits)  # refuses huge numbers
    return exact(digits)


DECODER = json.JSONDecoder(parse_constant=STRICT.parse_constant, parse_float=_exact)
_scan: Callable[[str, int], tuple[Any, int]] = DECODER.scan_once  # type: ignore[attr-defined]


def events(lines: Iterable[str], warn: Callable[[str], None]) -> Iterator[tuple[int, Any]]:
    """Yield (line, event) for every line that is not blank.

    A killed run may leave half a line at the end: if the last line does not end in a newline and is
    not JSON, it is dropped and `warn` is called. Any other line that is not a JSON object raises
    BadHistory.
    """
    for number, line in enumerate(lines, 1):
        try:
            event, end = _scan(line, 0)
            if line[end:] not in ("\n", ""):
                event = DECODER.decode(line)
        except (StopIteration, ValueError, RecursionError):
            text = line.strip()
            if not text:
                continue
            try:
                event = DECODER.decode(text)
            except (ValueError, RecursionError) as error:
                if not line.endswith("\n"):
                    warn(f"line {number} is torn (no newline, no JSON) and was dropped")
                    return
                raise BadHistory(f"no JSON: {error}", number) from None
        if type(event) is not dict:
            raise BadHistory(f"not a JSON object: {line.strip()[:60]!r}", number)
        yield number, event
