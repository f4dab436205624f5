"""Corrupt a file: its JSON in one or a few places, or its bytes. One Random decides everything."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

# Hostile values, for any place. Deep and huge ones are text, since `json` itself cannot write some.
HOSTILE: tuple[str, ...] = (
    "null", "true", "false", "0", "-1", "1.5", "-0.0", "1e308", "1e999", "NaN", "Infinity",
    "-Infinity", "9223372036854775808", "-9223372036854775809", "1" + "0" * 400, "1" + "0" * 6000,
    "10000000", '""', '"x"', '"\\u0000"', '"\\ud800"', '"../../x"', '"-1"', '"nemesis"', '"ok"',
    '"primary"', '"<script>"', "[]", "[[]]", "[null]", '["x"]', "[1,2,3]", "{}", '{"x":{}}',
    "[" * 3000 + "]" * 3000, '{"a":' * 3000 + "1" + "}" * 3000, '"' + "x" * 100_000 + '"',
)  # fmt: skip
_MARK = "\ue000here\ue000"  # replaces a hostile text until the JSON is written


def json_text(text: str, random: Random) -> str:
    """Corrupt one to three places of a JSON document."""
    row = json.loads(text)
    put: list[str] = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        row = _spoilt(row, random, put)
    written = json.dumps(row)
    for hostile in put:
        written = written.replace(json.dumps(_MARK), hostile, 1)
    return written


def lines(text: str, random: Random) -> str:
    """Corrupt one to three lines of a file that has a JSON document in each."""
    rows = text.splitlines()
    for _ in range(random.choice((1, 1, 2, 3))):
        place = random.randrange(len(rows))
        match random.randrange(12):
            case 0:
                del rows[place]
            case 1:
                rows.insert(place, rows[place])
            case 2:
                rows.insert(place, random.choice(HOSTILE))
            case 3:
                rows[place] += rows[random.randrange(len(rows))]
            case _:
                try:
                    rows[place] = json_text(rows[place], random)
                except (ValueError, RecursionError):  # spoilt already
                    rows[place] = random.choice(HOSTILE)
        rows = rows or [""]
    return "\n".join(rows) + "\n"


# Statements that end, stop or change the process that runs them.
STATEMENTS: tuple[str, ...] = (
    "raise SystemExit(1)", "raise KeyboardInterrupt", "raise GeneratorExit", "raise BaseException",
    "import os; os._exit(1)", "import os; os.abort()", "import os; os.fork()", "return 5",
    "import os; os.kill(os.getpid(), 9)", "import sys; sys.stdout.close()", "yield",
    "import sys; sys.stderr = None", "import sys; sys.setrecursionlimit(40)", "x = (lambda: x())()",
    "import os; os.close(1)", "import os; os.environ['A'] = 'b'", "x = 'x' * (1 << 40)",
    "import nothing_like_this", "import fencepost.harness", "from lock import MyLock",
    "from fencepost.plugins import LockType; MyLock = LockType()", "x = " + "(" * 300 + ")" * 300,
    "x = " + "-" * 100_000 + "1", "x = '" + "x" * 1_000_000 + "'", "def MyLock(*a): return 5",
    "MyLock = None", "class MyLock: pass", "del self", "print('\x1b[2J' * 9)", "assert False",
    "\0", "\f", '"""', "if", "\ufeff", "import threading; threading.Thread(target=x).start()",
)  # fmt: skip


def python(text: str, random: Random) -> str:
    """Add a statement at one to three lines, with their indentation, or corrupt the lines."""
    rows = text.splitlines()
    for _ in range(random.choice((1, 1, 2, 3))):
        place = random.randrange(len(rows))
        line = rows[place]
        match random.randrange(8):
            case 0:
                del rows[place]
            case 1:
                rows[place] = " " * random.randrange(9) + line.lstrip()
            case 2:
                words = line.split(" ")
                random.shuffle(words)
                rows[place] = " ".join(words)
            case _:
                indent = line[: len(line) - len(line.lstrip())]
                rows.insert(place, indent + random.choice(STATEMENTS))
    return "\n".join(rows) + "\n"


# Words in a list of packages or names.
WORDS: tuple[str, ...] = (
    "", "-r x", "-e .", "==", "==1", "[x", "(", "v", "v1", "//", "\\", "\x1b[2J", "\u202e", "\0",
    "\u0663.1", "==\u0663", "v\u0663", "==1" + "0" * 6000, "v1" + "0" * 6000, "." * 100_000,
    " " * 100_000, "x" * 100_000, "a.b " * 30_000, "require (", ")", "module x",
    "[" * 3000, "\ud800",
)  # fmt: skip


def words(text: str, random: Random) -> str:
    """Corrupt one to three lines: add a hostile word, replace one, or repeat the line."""
    rows = text.splitlines()
    for _ in range(random.choice((1, 1, 2, 3))):
        place, word = random.randrange(len(rows)), random.choice(WORDS)
        match random.randrange(6):
            case 0:
                rows.insert(place, word)
            case 1:
                rows[place] = word
            case 2:
                rows += [rows[place]] * min(20_000, 2_000_000 // (len(rows[place]) + 1))
            case _:
                parts = rows[place].split(" ")
                parts[random.randrange(len(parts))] += word
                rows[place] = " ".join(parts)
    return "\n".join(rows) + "\n"


def some_bytes(content: bytes, random: Random) -> bytes:
    """Flip, drop, repeat or insert bytes."""
    found = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 8))):
        place, length = random.randrange(len(found) + 1), random.choice((1, 1, 4, 64, 4096))
        match random.randrange(5):
            case 0 if place < len(found):
                found[place] ^= 1 << random.randrange(8)
            case 1:
                del found[place : place + length]
            case 2:
                found[place:place] = found[place : place + length]
            case 3:
                found[place:place] = random.randbytes(min(length, 64))
            case _:
                brackets = random.choice((b"[", b"{", b"(", b'"', b"#{", b"\\", b"9"))
                found[place:place] = brackets * length
    return bytes(found)


def spoilt(content: bytes, shape: Callable[[str, Random], str] | None, random: Random) -> bytes:
    """Corrupt a file, mostly by its shape, if it has one."""
    if shape is not None and random.random() < 0.8:
        return shape(content.decode(), random).encode(errors="surrogatepass")
    return some_bytes(content, random)


def _spoilt(row: Any, random: Random, put: list[str]) -> Any:
    """Return the value with one corrupt place, which is drawn on the way down."""
    inside = list(row.items()) if isinstance(row, dict) else list(enumerate(row))[:200] if (
        isinstance(row, list)
    ) else []  # fmt: skip
    if not inside or random.random() < 0.15:
        put.append(random.choice(HOSTILE))
        return _MARK
    key, value = random.choice(inside)
    changed = row.copy()
    match random.randrange(10):
        case 0:
            del changed[key]
        case 1 if isinstance(changed, dict):
            changed[random.choice(("x", "", "__proto__", "index", "deadline"))] = value
        case 1:
            changed.append(value)
        case _:
            changed[key] = _spoilt(value, random, put)
    return changed
