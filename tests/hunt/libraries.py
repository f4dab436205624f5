"""Libraries of other people that may be hunted: a test of one is skipped where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

_MODULES = {"pottery": "pottery", "python-redis-lock": "redis_lock"}


def needs(library):
    """The mark of a test that needs it."""
    missing = find_spec(_MODULES[library]) is None
    return pytest.mark.skipif(missing, reason=f"{library} is not installed")
