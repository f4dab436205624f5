"""Suites that can run: an invalid suite of a package is skipped and reported."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.harness.campaigns.suite import EntryRuns, entries
from fencepost.harness.errors import BadArguments
from fencepost.registry import blame
from fencepost.workloads.scenarios.registry import SUITES


def usable(
    seed: int, server: Mapping[str, str] | None = None, seeds: int | None = None
) -> tuple[dict[str, list[EntryRuns]], list[str]]:
    """Return every suite that can run with its entries, and for each other suite the reason.

    Raises:
        BadArguments: a built-in suite cannot run with these arguments.
    """
    sound, bad = SUITES.sound()
    found, why = {}, [str(error) for error in bad]
    for suite in sound:
        try:
            found[suite.name] = entries(suite.name, seed, server, seeds)
        except BadArguments as error:
            point = SUITES.point(suite.name)
            if point is None:
                raise
            why.append(f"{blame(point)}: {error}")
    return found, why
