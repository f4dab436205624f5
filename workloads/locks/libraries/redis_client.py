"""redis-py's client with its own defaults, but for what a user of a lock has to choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redis import Redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from fencepost.workloads.locks.lock import Env


def connect(env: Env, node: str, options: Mapping[str, Any]) -> Redis:
    """`options`: node_timeout_ms; client_retries, how often it sends a request again by itself."""
    host, port = env.address(node)
    timeout_s = options["node_timeout_ms"] / 1000
    return Redis(
        host=host,
        port=port,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(ExponentialWithJitterBackoff(), options["client_retries"]),
    )
