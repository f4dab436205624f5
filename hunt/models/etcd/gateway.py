"""Decodes requests to etcd's JSON gateway, as clients send them through their own HTTP library.

The gateway takes the names of fields as they are in rpc.proto, and in lowerCamelCase as well (the
JSON mapping of proto3).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from fencepost.hunt.models.http_session import Heard
from fencepost.hunt.sim.unknown import Unknown

PORT = 2379
VERSION = "version"
"""The command of `GET /version`, which each server answers by itself."""
_PREFIXES = ("/v3/", "/v3beta/")
_HUMP = re.compile("(?<=[a-z])[A-Z]")


def command(heard: Heard) -> tuple[str, bytes]:
    """Return the path without its version, and the body with the names of rpc.proto.

    Raises:
        Unknown: it is no request that the model answers.
    """
    method, path, _, _, body = heard
    if (method, path) == ("GET", "/version"):
        return VERSION, b"{}"
    prefix = next((one for one in _PREFIXES if path.startswith(one)), None)
    if prefix is None or method != "POST":
        raise Unknown(f"the model of etcd has no {method} {path}")
    short = path.removeprefix(prefix)
    if short == "watch":
        raise Unknown("the model of etcd has no watch for clients with their own HTTP library")
    try:
        decoded = msgspec.json.decode(body or b"{}")
    except msgspec.DecodeError as error:
        raise Unknown(f"the model of etcd answers no request that is not JSON: {error}") from None
    return short, msgspec.json.encode(_plain(decoded))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_HUMP.sub(_low, name): _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _low(found: re.Match[str]) -> str:
    return f"_{found.group().lower()}"
