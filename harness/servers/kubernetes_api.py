"""Asks the API server of Kubernetes on its own node, real or a model."""

from __future__ import annotations

import contextlib
import json
import time
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException
from typing import Any

from fencepost.node.watch import Bounds, Watch

_VERSION = "/version"


def ask(link: HTTPConnection, path: str) -> tuple[dict[str, Any], str]:
    """Return the object that the server answers on this connection, which is closed then, and the
    answer's Date.

    Raises:
        OSError: the server does not answer, or refuses.
    """
    with contextlib.closing(link):
        try:
            link.request("GET", path)
            reply = link.getresponse()
            content = json.loads(reply.read())
        except (HTTPException, ValueError) as error:
            raise OSError(f"the API server did not answer {path}: {error!r}") from error
        if reply.status != 200:
            message = content.get("message")
            raise OSError(f"the API server answered {reply.status} to {path}: {message}")
        return content, reply.headers["Date"]


def version(link: HTTPConnection) -> str:
    """Return the server's version. Raises OSError, as `ask` does."""
    found, _ = ask(link, _VERSION)
    return str(found["gitVersion"])


def wall(link: HTTPConnection) -> Bounds:
    """Bound the wall clock by the Date of a reply, which has a resolution of 1 s. Raises OSError,
    as `ask` does."""
    watch = Watch(time.CLOCK_REALTIME)
    _, date = ask(link, _VERSION)
    shown_s = round(parsedate_to_datetime(date).timestamp())
    return watch.bounds(shown_s * 10**9, grain_ns=10**9)
