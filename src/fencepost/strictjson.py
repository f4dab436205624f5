"""Strict JSON decoding for files from untrusted sources: decodes, or refuses with a reason.

Python's decoder accepts NaN and Infinity, turns 1e999 into infinity and "\\ud800" into half a
character, and raises RecursionError for deep nesting. Each causes trouble far from the file, so
each is refused here.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

# Levels of brackets. A deeper document may overflow the stack of a later reader.
DEEPEST = 64


def decode(content: bytes) -> Any:
    """Decode one JSON document.

    Raises:
        ValueError: it is malformed; the text gives the place and the reason.
    """
    text = content.decode("utf-8")
    try:
        # There are millions of lines, and looking for white space around each takes a third of the
        # time.
        try:
            found, end = DECODER.raw_decode(text)
        except json.JSONDecodeError:
            end = -1
        if end < 0 or text[end:].strip(" \t\n\r"):
            found = DECODER.decode(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(found, ensure_ascii=False).encode("utf-8")
        if text.count("[") + text.count("{") > DEEPEST and _is_deep(found):
            raise RecursionError
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair, which is not a character") from None
    return found


def _is_deep(found: Any) -> bool:
    level = [found]
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:40]} is too large")
    return number


DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
