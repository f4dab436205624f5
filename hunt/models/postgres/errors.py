"""Errors of PostgreSQL, with their SQLSTATE."""

from __future__ import annotations


class PgError(Exception):
    """An error that the server reports. FATAL ends the session."""

    def __init__(self, code: str, message: str, severity: str = "ERROR") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.severity = severity


def syntax(near: str) -> PgError:
    words = f'syntax error at or near "{near}"' if near else "syntax error at end of input"
    return PgError("42601", words)
