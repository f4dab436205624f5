"""Describes requests and replies in a few words, for the drawing of a counterexample."""

from __future__ import annotations

import re
from typing import Any

from fencepost.hunt.sim.network import Refusal

LONGEST = 40
"""Longest description, in characters."""
_OPAQUE = 14
"""A longer value, such as a random one, is shown as an ellipsis."""
_BYTES = re.compile("[\ud800-\udfff]")


def shortened(text: str, most: int = LONGEST) -> str:
    """Return a text in one line, cut off with an ellipsis if it is long."""
    line = " ".join(_characters(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def name(command: tuple[Any, ...]) -> str:
    """Return the name of a command whose arguments are not known."""
    return shortened(text(command[0])) if command else "request"


def text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return _characters(str(value))


def _characters(text: str) -> str:
    """Replace bytes that are no UTF-8, which models keep as surrogates: no file can have them."""
    return _BYTES.sub("\N{REPLACEMENT CHARACTER}", text)


def value(given: Any) -> str:
    """Return a value of a request or reply, or an ellipsis if it is long."""
    shown = text(given)
    return shown if len(shown) <= _OPAQUE and shown.isprintable() else "…"


def reply(command: tuple[Any, ...], answer: Any) -> str:
    """Describe a reply: the value itself if it is short."""
    if answer is None:
        return "nil"
    if isinstance(answer, Refusal):
        return shortened(f"error {text(answer)}", 24)
    if isinstance(answer, list | tuple):
        return shortened(", ".join(reply(command, one) for one in answer), 24) or "nothing"
    return value(answer)
