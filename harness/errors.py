"""Errors that end a command: what was tried, what happened, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Collection


class BadArguments(ValueError):
    """What was asked for makes no sense; exit code 254."""


class Crashed(RuntimeError):
    """What was asked for could not be done; exit code 255."""


def choose(what: str, given: str, valid: Collection[str]) -> str:
    """Return `given` if it is one of the valid names.

    Raises:
        BadArguments: it is not; the text lists the valid ones.
    """
    if given not in valid:
        near = difflib.get_close_matches(given, valid, n=1)
        meant = f". Did you mean {near[0]}?" if near else ""
        raise BadArguments(
            f"there is no {what} {given!r}; choose one of: {', '.join(valid)}{meant}"
        )
    return given
