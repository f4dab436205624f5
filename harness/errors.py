"""Errors that end a command: what was tried, what happened, what to do."""

from __future__ import annotations


class BadArguments(ValueError):
    """What was asked for makes no sense; exit code 254."""


class Crashed(RuntimeError):
    """What was asked for could not be done; exit code 255."""
