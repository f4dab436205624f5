"""Translates a library's exceptions into those of a lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fencepost.workloads.contract.lock import Failed, Indeterminate

Types = type[Exception] | tuple[type[Exception], ...]


@contextmanager
def translated(unknown: Types, refused: Types = ()) -> Iterator[None]:
    """Raise Indeterminate for `unknown` exceptions, after which a request may have been carried
    out, and Failed for `refused` ones: the hold has ended."""
    try:
        yield
    except refused as error:
        raise Failed("not-held", str(error)) from error
    except unknown as error:
        raise Indeterminate("timeout", repr(error)) from error
