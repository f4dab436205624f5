"""Decodes the bytes of a connection into commands, as networking.c of Redis 7.0 does.

A request is an array of strings, or a line of words ("inline"), which may be quoted. Redis answers
a malformed request with an error, and closes the connection.
"""

from __future__ import annotations

import re

from fencepost.hunt.models.redis.arguments import LARGEST, CommandError, integer

Command = tuple[str, ...]
MALFORMED = "(MALFORMED)"
"""The name of the last command of a connection, whose argument is Redis' error."""
_END = b"\r\n"
_DOLLAR = ord("$")
_FREQUENT = {b"%d" % number: number for number in range(100)}
_MOST_WORDS, _LONGEST, _LONGEST_LINE = 2**31 - 1, 512 * 2**20, 64 * 2**10
_QUOTED = re.compile(rb"""\s*(?:"((?:[^"\\]|\\.)*)"(?=\s|\Z)|'((?:[^'\\]|\\.)*)'(?=\s|\Z))""", re.S)
_BARE = re.compile(rb"\s*([^\s\"']+)")
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.S)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


class _Malformed(Exception):
    """The bytes are no request; Redis' words."""


class Decoder:
    """Decodes bytes, in pieces of any length."""

    def __init__(self) -> None:
        self._rest = b""
        self._over = False

    def feed(self, data: bytes) -> list[Command]:
        """Return the commands that are complete now; after a malformed one nothing is read."""
        self._rest += data
        found = []
        try:
            while not self._over and (words := self._next()) is not None:
                if words:
                    found.append(tuple(words))
        except _Malformed as error:
            self._over = True
            found.append((MALFORMED, f"ERR Protocol error: {error}"))
        return found

    def _next(self) -> list[str] | None:
        """Return the words of the next request, [] for an empty one, or None: incomplete."""
        if not self._rest:
            return None
        words, end = self._array() if self._rest[:1] == b"*" else self._line()
        if words is not None:
            self._rest = self._rest[end:]
        return words

    def _line(self) -> tuple[list[str] | None, int]:
        end = self._rest.find(b"\n")
        if end < 0:
            self._bounded(0, "too big inline request")
            return None, 0
        return list(map(_text, _split(self._rest[:end].removesuffix(b"\r")))), end + 1

    def _array(self) -> tuple[list[str] | None, int]:
        data = self._rest
        end = data.find(_END)
        if end < 0:
            self._bounded(0, "too big mbulk count string")
            return None, 0
        words: list[str] = []
        at, digits = end + 2, data[1:end]
        count = _FREQUENT.get(digits)
        if count is None:
            count = _number(digits, "invalid multibulk length", -LARGEST, _MOST_WORDS)
        for _ in range(count):
            end = data.find(_END, at)
            if end < 0:
                self._bounded(at, "too big bulk count string")
                return None, 0
            if data[at] != _DOLLAR:
                raise _Malformed(f"expected '$', got '{_text(data[at : at + 1])}'")
            begin, digits = end + 2, data[at + 1 : end]
            size = _FREQUENT.get(digits)
            if size is None:
                size = _number(digits, "invalid bulk length", 0, _LONGEST)
            end = begin + size
            at = end + 2
            if len(data) < at:
                return None, 0
            words.append(data[begin:end].decode("utf-8", "surrogateescape"))
        return words, at

    def _bounded(self, at: int, words: str) -> None:
        """Check the length of a line that begins here and is incomplete."""
        if len(self._rest) - at > _LONGEST_LINE:
            raise _Malformed(words)


def _number(digits: bytes, words: str, least: int, most: int) -> int:
    try:
        found = integer(_text(digits))
    except CommandError:
        raise _Malformed(words) from None
    if not least <= found <= most:
        raise _Malformed(words)
    return found


def _split(line: bytes) -> list[bytes]:
    """Split a line into words, as Redis' sdssplitargs does."""
    words, at, line = [], 0, line.rstrip()
    while at < len(line):
        word, at = _word(line, at)
        words.append(word)
    return words


def _word(line: bytes, at: int) -> tuple[bytes, int]:
    """Return the word that begins here and its end. A quoted part ends its word."""
    word = b""
    if bare := _BARE.match(line, at):
        word, at = bare[1], bare.end()
        if line[at : at + 1] not in (b'"', b"'"):
            return word, at
    quoted = _QUOTED.match(line, at)
    if quoted is None:
        raise _Malformed("unbalanced quotes in request")
    if quoted[1] is None:
        return word + quoted[2].replace(b"\\'", b"'"), quoted.end()
    return word + _ESCAPE.sub(_unescaped, quoted[1]), quoted.end()


def _unescaped(found: re.Match[bytes]) -> bytes:
    if found[1] is not None:
        return bytes([int(found[1], 16)])
    return _ESCAPED.get(found[2], found[2])


def _text(data: bytes) -> str:
    # All bytes survive a round trip.
    return data.decode("utf-8", "surrogateescape")
