"""Exit codes, as in Jepsen: 0 valid, 1 invalid, 2 unknown, 254 bad arguments, 255 crashed."""

from __future__ import annotations

from fencepost.checker.verdict import Valid

EXIT: dict[Valid, int] = {True: 0, False: 1, "unknown": 2}
BAD_ARGUMENTS, CRASHED, INTERRUPTED = 254, 255, 130
