"""The lines by which servers crash, of all kinds, as the checker `server-log` searches for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fencepost.checker.facts.crash_lines import CrashLines, crash_lines
from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.kinds import KINDS
from fencepost.node.kind import Kind


def of_file(kind: Kind | None) -> dict[str, Any]:
    """Return what run.json has of a run's kind of server: its crash lines, if it is in no registry.

    Its file may be gone when the run is judged again.
    """
    if kind is None or kind.name in KINDS or not (kind.crash_lines or kind.loss_lines):
        return {}
    return {"crash_lines": [*kind.crash_lines], "loss_lines": [*kind.loss_lines]}


def known(test: Mapping[str, Any] | None = None) -> CrashLines:
    """Return the crash lines of all registered kinds, and those in a run's description.

    Raises:
        BadArguments: the description has an invalid pattern.
    """
    kinds, facts = KINDS.sound()[0], test or {}
    crashes = [line for kind in kinds for line in kind.crash_lines]
    losses = [line for kind in kinds for line in kind.loss_lines]
    try:
        return crash_lines(
            dict.fromkeys((*crashes, *facts.get("crash_lines", ()))),
            dict.fromkeys((*losses, *facts.get("loss_lines", ()))),
        )
    except re.error as error:
        raise BadArguments(f"run.json cannot be used: crash_lines: {error}") from error
