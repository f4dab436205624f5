"""Describes requests to etcd's gateway, and its answers, in a few words."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

import msgspec

from fencepost.hunt.models.words import name, shortened

_KEY = 20


def asked(command: tuple[Any, ...]) -> str:
    """Describe a request: its path, and its TTL or the keys that it concerns."""
    path, body = name(command), _decoded(command[1] if len(command) > 1 else b"")
    if "TTL" in body:
        return shortened(f"{path} TTL {body['TTL']}")
    return shortened(" ".join([path, *dict.fromkeys(_keys(body))]))


def answered(command: tuple[Any, ...], answer: Any) -> str:
    """Describe an answer: whether a transaction succeeded, how many keys were found, or its
    status."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        return "answer"
    status, data = answer
    body = _decoded(data)
    if status != 200:
        return shortened(f"error {body.get('message', status)}", 24)
    if command[0] == "kv/txn":
        return "succeeded" if body.get("succeeded") else "not succeeded"
    if command[0] == "kv/range":
        return f"{len(body.get('kvs', ()))} found"
    return "deleted" if command[0] == "watch" else "OK"


def _decoded(data: Any) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(data)
    except (msgspec.MsgspecError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _keys(body: Any) -> Iterator[str]:
    """Yield the keys of a request, and of the steps of a transaction that succeeds."""
    if not isinstance(body, dict):
        return
    for field, what in body.items():
        if field in ("key", "name") and isinstance(what, str):
            yield _key(what)
        elif field == "success" and isinstance(what, list):
            for step in what:
                yield from (f"{_verb(kind)} {key}" for kind in step for key in _keys(step[kind]))
        elif field == "create_request":
            yield from _keys(what)


def _verb(kind: str) -> str:
    return kind.removeprefix("request_").partition("_")[0]


def _key(text: str) -> str:
    try:
        found = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        found = text
    # The end of a key tells more than its prefix.
    return found if len(found) <= _KEY else "…" + found[-_KEY + 1 :]
