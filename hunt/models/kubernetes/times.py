"""Times as the API server reads and writes them: RFC 3339 in UTC, of a Lease with microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_MICRO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})(Z|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_micro(text: str) -> str:
    """Return a time with microseconds as the server writes it.

    Raises:
        ValueError: it is no such time. The server demands exactly six digits (metav1.MicroTime).
    """
    found = _MICRO.fullmatch(text)
    if found is None:
        raise ValueError(text)
    moment = datetime.fromisoformat(found[1] + found[2].replace("Z", "+00:00"))
    return _written(moment, micro=True)


def from_ns(ns: int, micro: bool) -> str:
    """Return a time in ns since 1970 as the server writes it."""
    return _written(_EPOCH + timedelta(microseconds=ns // 1000), micro)


def _written(moment: datetime, micro: bool) -> str:
    form = "%Y-%m-%dT%H:%M:%S" + (".%fZ" if micro else "Z")
    return moment.astimezone(UTC).strftime(form)
