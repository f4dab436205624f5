"""Checks whether a user lock can run in simulation: reads its files without importing them.

Sockets, `time`, `datetime`, `threading`, `random` and `uuid` are simulated (hunt/intercept). The
modules listed here are not: code that uses them would reach the real machine, and its run would not
be repeatable.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from fencepost import syntax

_CLUSTER, _SENTINEL = "Redis Cluster has no model", "Sentinel has no model"
_WHY = {
    "multiprocessing": "other processes are not simulated: use threads",
    "subprocess": "other processes are not simulated: use threads",
    "signal": "signals are not simulated: use threading.Timer or a timeout, and leave handlers to "
    "the program that uses the lock",
    "psycopg": "libpq makes its connections outside of Python: pg8000 can be simulated",
    "psycopg2": "libpq makes its connections outside of Python: pg8000 can be simulated",
    "grpc": "its connections are made outside of Python",
    "etcd3": "its connections are made outside of Python",
    "aetcd": "grpcio makes its connections outside of Python: etcd's JSON gateway can be simulated",
    "gevent": "it has its own scheduler: threads and asyncio can be simulated",
    "trio": "it has its own scheduler: asyncio can be simulated, and anyio on it",
    "redis.cluster": _CLUSTER,
    "redis.RedisCluster": _CLUSTER,
    "redis.asyncio.cluster": _CLUSTER,
    "redis.asyncio.RedisCluster": _CLUSTER,
    "redis.sentinel": _SENTINEL,
    "redis.Sentinel": _SENTINEL,
    "redis.asyncio.sentinel": _SENTINEL,
    "redis.asyncio.Sentinel": _SENTINEL,
}


def installed(module: str) -> bool:
    """Return whether a module of this name can be imported; the name may be empty."""
    top = module.partition(".")[0]
    return bool(top) and find_spec(top) is not None


def why_not(module: str) -> str:
    """Return why a module cannot be simulated; '' if it can."""
    return _WHY.get(module) or _WHY.get(module.partition(".")[0], "")


def outside_of_reach(files: Mapping[str, Path]) -> str:
    """Return the first import that is not simulated and the reason, as a clause; '' for none."""
    for name, path in sorted(files.items()):
        if path.suffix != ".py":
            continue
        for module in _imported(syntax.tree(path.read_bytes())):
            if why := why_not(module):
                return f"{name} imports {module}, and {why}"
    return ""


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
