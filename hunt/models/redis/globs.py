"""Redis' patterns for names: `*`, `?`, `[a-z]`, `[^a]`, and a backslash before a special character
(util.c, stringmatchlen)."""

from __future__ import annotations

import re
from functools import cache


def matches(pattern: str, name: str) -> bool:
    return _compiled(pattern).match(name) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    found, at = "", 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "*":
            found += ".*"
        elif letter == "?":
            found += "."
        elif letter == "[":
            part, at = _class(pattern, at)
            found += part
        else:
            if letter == "\\" and at < len(pattern):
                letter = pattern[at]
                at += 1
            found += re.escape(letter)
    return re.compile(found + r"\Z", re.DOTALL)


def _class(pattern: str, at: int) -> tuple[str, int]:
    """Return the expression for the class that begins here, and its end. One that is not closed
    ends with the pattern."""
    negated = pattern[at : at + 1] == "^"
    at += negated
    found = ""
    while at < len(pattern) and pattern[at] != "]":
        if pattern[at] == "\\" and at + 1 < len(pattern):
            at += 1
            found += re.escape(pattern[at])
        elif pattern[at + 1 : at + 2] == "-" and at + 2 < len(pattern):
            low, high = sorted((pattern[at], pattern[at + 2]))
            found += f"{re.escape(low)}-{re.escape(high)}"
            at += 2
        else:
            found += re.escape(pattern[at])
        at += 1
    if not found:
        return ("." if negated else r"(?!)"), at + 1
    return f"[{'^' if negated else ''}{found}]", at + 1
