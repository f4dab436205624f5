"""Splits SQL into tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from fencepost.hunt.models.postgres.errors import PgError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)
  | (?P<escaped>[eE]'(?:[^'\\]|''|\\.)*')
  | (?P<string>'(?:[^']|'')*')
  | (?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
  | (?P<param>\$\d+)
  | (?P<quoted>"(?:[^"]|"")+")
  | (?P<word>[A-Za-z_][A-Za-z_0-9$]*)
  | (?P<op>::|<>|!=|<=|>=|\|\||[-+*/%<>=(),.;\[\]:^@&|~!?\#])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Token(NamedTuple):
    """`kind`: word, quoted, string, number, param, op, or end. `text`: as it was written;
    `value`: without quotes, a word in lower case."""

    kind: str
    text: str
    value: str


def tokens(sql: str) -> list[Token]:
    """Return the tokens of a query, the last of kind `end`.

    Raises:
        PgError: a quoted string does not end.
    """
    found: list[Token] = []
    at = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        if match is None:
            raise _unterminated(sql[at:])
        at = match.end()
        kind, text = str(match.lastgroup), match.group()
        if kind == "tag":
            kind = "dollar"
        if kind != "space":
            found.append(_token(kind, text))
    return [*found, Token("end", "", "")]


def _token(kind: str, text: str) -> Token:
    match kind:
        case "word":
            return Token(kind, text, text.lower())
        case "quoted":
            return Token(kind, text, text[1:-1].replace('""', '"'))
        case "string":
            return Token(kind, text, text[1:-1].replace("''", "'"))
        case "escaped":
            inner = text[2:-1].replace("''", "'")
            value = re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), inner)
            return Token("string", text, value)
        case "dollar":
            size = text.index("$", 1) + 1
            return Token("string", text, text[size:-size])
        case _:
            return Token(kind, text, text)


def _unterminated(rest: str) -> PgError:
    if rest.startswith(("'", "e'", "E'")):
        return PgError("42601", f'unterminated quoted string at or near "{rest}"')
    if rest.startswith('"'):
        return PgError("42601", f'unterminated quoted identifier at or near "{rest}"')
    return PgError("42601", f'syntax error at or near "{rest[:1]}"')
