"""Reads a file of any supported format as (line, event) pairs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from fencepost.checker.lincheck.formats import edn, jsonl, porcupine
from fencepost.checker.lincheck.history import BadHistory

Reader = Callable[[Iterable[str], Callable[[str], None]], Iterator[tuple[int, Any]]]

READERS: Final[dict[str, Reader]] = {
    "jsonl": jsonl.events,
    "edn": edn.events,
    "porcupine-etcd": porcupine.etcd_events,
    "porcupine-kv": porcupine.kv_events,
}
_HEAD = 65_536  # characters examined to detect the format


def read(
    path: str | Path, form: str | None, warn: Callable[[str], None]
) -> Iterator[tuple[int, Any]]:
    """Yield (line, event) pairs of the file lazily.

    `form` is one of READERS; None: detect it from the content. Raises BadHistory, with the file and
    if possible the line, for unreadable input, and for a file without any event. `warn` gets a
    sentence for a torn last line, which is dropped.
    """
    count = 0
    try:
        with open(path, encoding="utf-8") as lines:
            if form is None:
                form = detect(lines.read(_HEAD))
                lines.seek(0)
            for pair in READERS[form](lines, warn):
                count += 1
                yield pair
    except UnicodeDecodeError as error:
        raise BadHistory(f"not UTF-8 text: {error.reason}", file=str(path)) from None
    except OSError as error:
        raise BadHistory(f"cannot be read: {error.strerror}", file=str(path)) from None
    except BadHistory as error:
        raise error.at(file=str(path)) from None
    if not count:
        raise BadHistory("the file has no events", file=str(path))


def detect(head: str) -> str:
    """Return the format of a text that begins like this. Raises BadHistory if it is unknown."""
    start = re.sub(r"\A(?:[\s,]+|;[^\n]*\n)*", "", head)
    if not start:
        raise BadHistory("the file is empty")
    if start.startswith("INFO"):
        return "porcupine-etcd"
    if re.match(r'\{\s*"', start):
        return "jsonl"
    if start[0] in "[({#":
        first = re.match(r"[\[(\s]*(?:#[\w.]+\s*)?\{[^}]*", start)
        return "porcupine-kv" if first and re.search(r":key[\s\"]", first[0]) else "edn"
    raise BadHistory(f"cannot tell the format of {start[:40]!r}; give --format", 1)
