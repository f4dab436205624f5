"""The retries of a lock that polls until it is free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fencepost.workloads.contract.lock import Env


def tries(env: Env, options: Mapping[str, Any], shortest: float = 0.5) -> Iterator[int]:
    """Yield the number of each try, from 0 to `retries`, and sleep before all but the first.

    The delay is random, between `shortest` times `retry_delay_ms` and all of it.
    """
    for attempt in range(options["retries"] + 1):
        if attempt:
            env.sleep(env.random.uniform(shortest, 1) * options["retry_delay_ms"] / 1000)
        yield attempt
