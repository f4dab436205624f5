"""Jepsen's EDN histories: one collection of maps, or one map after another.

EDN (github.com/edn-format/edn) as far as histories use it: nil, booleans, numbers, strings,
characters, keywords and symbols (read as their names; as values these differ from strings), lists,
vectors, maps, sets, tagged values (read without the tag: `#jepsen.history.Op{...}` is its map; the
tag of jepsen.independent's tuples is kept), `#_` and `;`. Numbers are exact. A read
that returned nil carries no information, as in Knossos: its result is UNKNOWN.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from fencepost.checker.lincheck.formats.numbers import exact
from fencepost.checker.lincheck.history import UNKNOWN, BadHistory
from fencepost.checker.lincheck.model import Name, Pair, frozen

_TOKEN = re.compile(
    r"""[\s,]+|;[^\n]*
    |(?P<open>\#\{|[\[({])|(?P<close>[\])}])
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<char>\\(?:newline|space|tab|return|formfeed|backspace|u[0-9a-fA-F]{4}|\S))
    |(?P<discard>\#_)|(?P<tag>\#[A-Za-z][\w.*+!?$%&=<>/:-]*)
    |(?P<number>[+-]?\d+(?:/\d+|(?:\.\d*)?(?:[eE][+-]?\d+)?)[NM]?(?=[\s,;()\[\]{}"]|$))
    |(?P<name>:?[^\s,;()\[\]{}"\\\#^@~`]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}
_CHARS = {
    "newline": "\n",
    "space": " ",
    "tab": "\t",
    "return": "\r",
    "formfeed": "\f",
    "backspace": "\b",
}
_INDEPENDENT = "#jepsen.independent.Tuple"
_WORDS = {"nil": None, "true": True, "false": False}
_CLOSING = {"(": ")", "[": "]", "{": "}", "#{": "}"}


class _Torn(BadHistory):
    """The text ends inside a form; `line` is where the outermost open form began."""


class _Level(NamedTuple):
    opened: str
    items: list[Any]
    line: int
    prefixes: list[str]  # #_ and tags that apply to the next form


def events(lines: Iterable[str], warn: Callable[[str], None]) -> Iterator[tuple[int, Any]]:
    """Yield (line, event) for every map; `line` is where it begins.

    In the form of one map after another, a truncated map in a last line without newline is dropped,
    and `warn` is called. Raises BadHistory for broken EDN.
    """
    text = "".join(lines)
    try:
        for line, form, spread in _forms(text):
            if isinstance(form, dict):
                yield line, _event(form)
            elif not spread:
                raise BadHistory(f"not a map: {reprlib.repr(form)}", line)
    except _Torn as torn:
        torn_line = text.count("\n") + 1
        if text.endswith("\n") or torn.line != torn_line:
            raise
        warn(f"line {torn_line} is torn (the map does not end) and was dropped")


def _event(form: dict[Any, Any]) -> dict[Any, Any]:
    for name in ("process", "type", "f"):
        if isinstance(form.get(name), Name):
            form[name] = str(form[name])
    if form.get("type") == "ok" and form.get("f") == "read" and form.get("value") is None:
        return {**form, "value": UNKNOWN}
    return form


def _forms(text: str) -> Iterator[tuple[int, Any, bool]]:
    """Yield (line, form, spread) of all top-level forms; the maps of a top-level list one by one.

    `spread` is True for the end of a list whose items were already yielded.
    """
    stack = [_Level("", [], 0, [])]
    line, position, size = 1, 0, len(text)
    in_list = False
    while position < size:
        match = _TOKEN.match(text, position)
        if match is None:
            _unreadable(text, position, line, stack)
        position = match.end()
        kind, token = match.lastgroup, match.group()
        began = line
        if "\n" in token:
            line += token.count("\n")
        if kind is None:
            continue
        if kind == "open":
            if len(stack) == 1:
                in_list = token in "([" and "#_" not in stack[0].prefixes
            stack.append(_Level(token, [], began, []))
            continue
        if kind in ("discard", "tag"):
            stack[-1].prefixes.append(token)
            continue
        if kind == "close":
            form, began = _closed(stack, token, began)
        else:
            form = _atom(kind, token, began)
        prefixes = stack[-1].prefixes
        if _INDEPENDENT in prefixes and isinstance(form, list):
            form = Pair(form)
        if _discarded(prefixes):
            continue
        depth = len(stack)
        if depth == 1:
            yield began, form, isinstance(form, list)
        elif depth == 2 and in_list:
            yield began, form, False
        else:
            stack[-1].items.append(form)
    if len(stack) > 1:
        raise _unclosed(stack, f"the {stack[1].opened} of line {stack[1].line} is never closed")
    if stack[0].prefixes:
        raise BadHistory(f"nothing follows {stack[0].prefixes[-1]}", line)


def _unreadable(text: str, position: int, line: int, stack: list[_Level]) -> NoReturn:
    if text[position] == '"':
        raise _unclosed(stack, f"the string of line {line} is never closed")
    raise BadHistory(f"cannot read {text[position : position + 20]!r}", line)


def _unclosed(stack: list[_Level], reason: str) -> BadHistory:
    """Return the torn last line of a killed run, which only a top-level map can be; raise
    otherwise."""
    line = stack[1].line if len(stack) > 1 else None
    torn = len(stack) > 1 and stack[1].opened == "{"
    return _Torn(reason, line) if torn else BadHistory(reason, line)


def _discarded(prefixes: list[str]) -> bool:
    """Consume the prefixes of the form that just ended; return whether to discard it.

    A tag does not change its form, and `#_ #_ a b` discards both.
    """
    while prefixes and prefixes[-1] != "#_":
        prefixes.pop()
    if prefixes:
        prefixes.pop()
        return True
    return False


def _closed(stack: list[_Level], token: str, line: int) -> tuple[Any, int]:
    level = stack.pop()
    if not stack:
        raise BadHistory(f"{token} closes nothing", line)
    if _CLOSING[level.opened] != token:
        raise BadHistory(f"{token} closes the {level.opened} of line {level.line}", line)
    if level.prefixes:
        raise BadHistory(f"nothing follows {level.prefixes[-1]}", line)
    if level.opened == "{":
        if len(level.items) % 2:
            raise BadHistory("a map needs a value for every key", level.line)
        found = dict(zip(map(_key, level.items[::2]), level.items[1::2], strict=True))
        if 2 * len(found) < len(level.items):
            raise BadHistory("two keys of a map are equal", level.line)
        return found, level.line
    if level.opened == "#{":
        return frozenset(map(frozen, level.items)), level.line
    return level.items, level.line


def _key(form: Any) -> Any:
    return form if isinstance(form, str) else frozen(form)


def _atom(kind: str, token: str, line: int) -> Any:
    if kind == "name":
        return _WORDS[token] if token in _WORDS else Name(token.removeprefix(":"), token)
    if kind == "number":
        return _number(token, line)
    if kind == "char":
        name = token[1:]
        of_code = len(name) == 5 and name[0] == "u"
        char = chr(int(name[1:], 16)) if of_code else _CHARS.get(name, name)
        return Name(char, f"\\{char}")
    return _ESCAPE.sub(lambda match: _unescaped(match[1], line), token[1:-1])


def _number(token: str, line: int) -> int | float | Fraction | Decimal:
    if "/" in token:
        over, under = map(int, token.rstrip("NM").split("/"))
        if not under:
            raise BadHistory(f"{token} divides by zero", line)
        return Fraction(over, under)
    if token.endswith("M"):
        return Decimal(token[:-1])  # exact, as it was written
    token = token.removesuffix("N")
    try:
        return int(token)
    except ValueError:
        return exact(token)


def _unescaped(escape: str, line: int) -> str:
    if escape[0] == "u" and len(escape) == 5:
        return chr(int(escape[1:], 16))
    if escape in _ESCAPES:
        return _ESCAPES[escape]
    raise BadHistory(f"unknown escape \\{escape} in a string", line)
