"""Third-party libraries that may be hunted; a test of a missing one is skipped."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from fencepost.workloads.locks.registry import LOCKS


def needs(library):
    """Return the mark of a test that needs the library."""
    missing = find_spec(LOCKS[library].imported) is None
    return pytest.mark.skipif(missing, reason=f"{library} is not installed")
