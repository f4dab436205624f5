"""Readers of files that options name: lists of packages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.fuzz import spoil
from tests.fuzz.door import Answer, Door, command

REQUIRED = b"""# packages
redis==8.1.0
tooz[zookeeper] >= 2 ; python_version > "3.8"
portalocker==2.7.0 --hash=sha256:0
redis-py \\
  ==5.0
"""
LOCKED = json.dumps({"name": "x", "lockfileVersion": 3, "packages": {
    "": {"name": "x"}, "node_modules/redlock": {"version": "4.2.0"},
    "node_modules/a/node_modules/redis": {"version": "4.6.1", "dev": True},
}}).encode()  # fmt: skip
GO = b"""module example.org/x

go 1.21

require github.com/go-redsync/redsync/v4 v4.8.1
require (
\tgo.etcd.io/etcd/client/v3 v3.5.9 // indirect
)
"""


def _register(name: str, *more: str) -> Callable[[bytes], Answer]:
    def hand(content: bytes) -> Answer:
        Path(name).write_bytes(content)
        # 1: a row concerns a package; 255: the file cannot be read (docs/register.md).
        return command("register", "--check", name, *more, also=(1, 255))

    return hand


def doors() -> list[Door]:
    """Return the readers of files that options name."""
    return [
        Door(
            "register requirements.txt", REQUIRED, spoil.words,
            _register("requirements.txt"),
        ),
        Door(
            "register package-lock.json", LOCKED, spoil.json_text,
            _register("package-lock.json", "--json"),
        ),
        Door("register go.mod", GO, spoil.words, _register("go.mod")),
    ]  # fmt: skip
