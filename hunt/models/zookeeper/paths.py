"""Paths of znodes, and the order in which Java's sets have strings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from fencepost.hunt.models.zookeeper.errors import BAD_ARGUMENTS, MARSHALLING, Refused

SPECIAL = ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config")
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


@lru_cache(4096)
def is_valid(path: str) -> bool:
    """Return whether a path is valid (PathUtils.validatePath)."""
    if path == "/":
        return True
    if not path.startswith("/") or path.endswith("/"):
        return False
    if _FORBIDDEN.search(path):
        return False
    return not {"", ".", ".."} & set(path[1:].split("/"))


def check(path: str | None) -> str:
    """Return a path. Raises Refused if it is none."""
    if path is None:
        raise Refused(MARSHALLING)
    if not is_valid(path):
        raise Refused(BAD_ARGUMENTS)
    return path


def parent_of(path: str | None, special: tuple[str, ...] = ()) -> str:
    """Return the parent's path, "" for the root. Raises Refused if there is none, or if the path is
    special."""
    if path is None:
        raise Refused(MARSHALLING)
    if "/" not in path or "\0" in path or path in special:
        raise Refused(BAD_ARGUMENTS)
    return path[: path.rindex("/")]


@lru_cache(8192)
def _hash(words: str) -> int:
    """Return String.hashCode, spread as HashMap does."""
    found = 0
    data = words.encode("utf-16-be")
    for at in range(0, len(data), 2):
        found = (31 * found + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return found ^ found >> 16


def in_java_order(words: Iterable[str], capacity: int) -> list[str]:
    """Return strings in the order of a HashSet with this capacity, in which they were inserted in
    the given order."""
    return sorted(words, key=lambda word: _hash(word) & (capacity - 1))


def grown(capacity: int, count: int) -> int:
    """Return the capacity of a HashSet with this many strings."""
    while count > capacity * 3 // 4:
        capacity *= 2
    return capacity
