"""redis-py's client with its own defaults, but for what a user of a lock has to choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fencepost.workloads.deferred import Deferred
from fencepost.workloads.locks.lock import Env

if TYPE_CHECKING:
    import redis
    from redis import backoff, retry
else:
    redis = Deferred("redis")
    backoff, retry = Deferred("redis.backoff"), Deferred("redis.retry")

CLIENT_RETRIES = "how often redis-py's client sends a request again by itself (its own default: 10)"
"""What the option `client_retries` says, of each lock that has this client."""


def connect(env: Env, node: str, options: Mapping[str, Any]) -> redis.Redis:
    """`options`: node_timeout_ms; client_retries, how often it sends a request again by itself."""
    host, port = env.address(node)
    timeout_s = options["node_timeout_ms"] / 1000
    return redis.Redis(
        host=host,
        port=port,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=retry.Retry(backoff.ExponentialWithJitterBackoff(), options["client_retries"]),
    )
