"""A server's log on its node: kept short while a run goes on, and fetched at its end.

What is left out was searched before (node/serverlog.py), by what the checker of server logs
looks for. So its verdict stands, however long the log was.
"""

from __future__ import annotations

import json
import shlex

from fencepost.checker.server_log import BAD, gap
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.node.places import PROGRAM

HEAD, TAIL = 4 << 20, 12 << 20
"""Bytes of a log's begin and end that stay; it has up to HEAD + 2 * TAIL before it is shortened."""
# It may have a night's megabytes to search.
_SEARCH_S = 120.0


def shorten(remote: Remote, path: str) -> dict[str, int] | None:
    """Leave the middle of a log out if it is long; where that is, if anything is left out.

    Raises:
        RemoteError: the node does not answer, or has no such log.
    """
    words = ["log", "shorten", path, str(HEAD), str(TAIL), BAD.pattern]
    said = remote.run([PROGRAM, *words], timeout_s=_SEARCH_S).out.strip()
    found: dict[str, int] | None = json.loads(said) if said else None
    return found


def begin(remote: Remote, path: str) -> None:
    """Forget what a log has so far.

    Raises:
        RemoteError: the node does not answer, or has no such log.
    """
    remote.run([PROGRAM, "log", "begin", path])


def fetch(remote: Remote, path: str) -> str:
    """A log: all of it, or what is left, with a line where something is missing.

    Empty if there is none.
    """
    try:
        cut = shorten(remote, path)
        if cut is None:
            return _read(remote, path)
        since, start, end = cut["since"], cut["start"], cut["end"]
        tail = remote.run(["tail", "-c", f"+{end + 1}", path]).out
        if end == start:
            return tail
        head = f"tail -c +{since + 1} {shlex.quote(path)} | head -c {start - since}"
        first = remote.run(["bash", "-c", head]).out
        kept = _read(remote, f"{path}.kept")
        return f"{first}{gap(end - start, searched=not cut['unkept'])}{kept}{tail}"
    except RemoteError:
        return ""


def _read(remote: Remote, path: str) -> str:
    return remote.get(path).decode(errors="replace")
