"""Shortens a server's log on its node during a run, and fetches it at the end.

The node searches the omitted part first (node/serverlog.py) for the lines that the server log
checker needs. So its verdict does not depend on the length of the log.
"""

from __future__ import annotations

import json
import shlex

from fencepost.checker.server_log import gap
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.harness.servers.crash_lines import known
from fencepost.node.places import PROGRAM

HEAD, TAIL = 4 << 20, 12 << 20
"""Bytes kept from the start and the end of a log that exceeds HEAD + 2 * TAIL."""
# A long run may leave many megabytes to search.
_SEARCH_S = 120.0


def shorten(remote: Remote, path: str) -> dict[str, int] | None:
    """Omit the middle of a long log; return its position, None if nothing is omitted.

    Raises:
        RemoteError: the node does not answer, or has no such log.
    """
    words = ["log", "shorten", path, str(HEAD), str(TAIL), known().every.pattern]
    output = remote.run([PROGRAM, *words], timeout_s=_SEARCH_S).out.strip()
    found: dict[str, int] | None = json.loads(output) if output else None
    return found


def begin(remote: Remote, path: str) -> None:
    """Let a log start at this moment.

    Raises:
        RemoteError: the node does not answer, or has no such log.
    """
    remote.run([PROGRAM, "log", "begin", path])


def fetch(remote: Remote, path: str) -> str:
    """Return a log, with a line where a part is omitted; empty if it does not exist."""
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
