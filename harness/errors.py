"""Errors that end a command. Their texts give the problem, the cause and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Collection


class BadArguments(ValueError):
    """The arguments are wrong or do not fit together; exit code 254."""


class Crashed(RuntimeError):
    """The arguments are right, but the command could not do its work; exit code 255."""


def choose(what: str, given: str, valid: Collection[str], lists: str = "") -> str:
    """Return `given` if it is one of the valid names. `lists` is a command that prints them.

    Raises:
        BadArguments: it is not one; the text lists the valid names, or names the command.
    """
    if given not in valid:
        near = difflib.get_close_matches(given, valid, n=1)
        meant = f". Did you mean {near[0]}?" if near else ""
        known = f"`{lists}` lists them" if lists else f"choose one of: {', '.join(valid)}"
        raise BadArguments(f"there is no {what} {given!r}; {known}{meant}")
    return given
