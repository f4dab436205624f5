"""Replaces Python's sources of chance by random numbers derived from the schedule."""

from __future__ import annotations

import os
import random
import secrets
import uuid
from collections.abc import Iterator
from typing import Any

from fencepost.hunt.intercept.context import either, here

_REAL_SEED = random.Random.seed
_REAL_SEED_MODULE = random.seed


def _seed_object(generator: random.Random, a: Any = None, version: int = 2) -> None:
    """Replace Random.seed: a generator without a seed gets one from the schedule."""
    if a is None and here() is not None:
        a = random.getrandbits(64)
    _REAL_SEED(generator, a, version)


def _seed(a: Any = None, version: int = 2) -> None:
    if a is None and here() is not None:
        a = random.getrandbits(64)
    _REAL_SEED_MODULE(a, version)


def _getrandom(size: int, flags: int = 0) -> bytes:
    return random.randbytes(size)


def _uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    return uuid.UUID(bytes=random.randbytes(16), version=1)


def _uuid4() -> uuid.UUID:
    return uuid.UUID(bytes=random.randbytes(16), version=4)


def _token_bytes(many: int | None = None) -> bytes:
    return random.randbytes(32 if many is None else many)


def places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement."""
    yield random.Random, "seed", _seed_object
    yield random, "seed", _seed
    yield os, "urandom", either(os.urandom, random.randbytes)
    yield random, "_urandom", either(os.urandom, random.randbytes)
    if hasattr(os, "getrandom"):
        yield os, "getrandom", either(os.getrandom, _getrandom)
    yield uuid, "uuid1", either(uuid.uuid1, _uuid1)
    yield uuid, "uuid4", either(uuid.uuid4, _uuid4)
    yield secrets, "token_bytes", either(secrets.token_bytes, _token_bytes)
