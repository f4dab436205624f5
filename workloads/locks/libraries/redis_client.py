"""redis-py's client with its own defaults, but for what a user of a lock has to choose.

To one server, or to the one that Sentinel says is the primary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env
from fencepost.workloads.transport.deferred import Deferred

if TYPE_CHECKING:
    import redis
    from redis import backoff, retry, sentinel
else:
    redis = Deferred("redis")
    sentinel = Deferred("redis.sentinel")
    backoff, retry = Deferred("redis.backoff"), Deferred("redis.retry")

CLIENT_RETRIES = "how often redis-py's client sends a request again by itself (its own default: 10)"
"""What the option `client_retries` says, of each lock that has this client."""


_SENTINEL_PORT, _GROUP = 26379, "fencepost"
# A primary that is cut off is silent, and so is its sentinel: the next one is asked soon.
_SENTINEL_S = 0.2


def connect(env: Env, node: str, options: Mapping[str, Any]) -> redis.Redis:
    """`options`: node_timeout_ms; client_retries, how often it sends a request again by itself."""
    host, port = env.address(node)
    return redis.Redis(host=host, port=port, **_chosen(options))


def primary(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> redis.Redis:
    """The client of the server that the sentinels on these nodes say is the primary.

    It asks the first sentinel that answers, and asks again when a connection is made anew.
    `options`: as for `connect`.
    """
    there = [(env.address(node)[0], _SENTINEL_PORT) for node in nodes]
    limits = {"socket_timeout": _SENTINEL_S, "socket_connect_timeout": _SENTINEL_S}
    never = retry.Retry(backoff.NoBackoff(), 0)
    asked: Any = sentinel.Sentinel
    found: redis.Redis = asked(there, sentinel_kwargs={**limits, "retry": never}).master_for(
        _GROUP, decode_responses=True, **_chosen(options)
    )
    return found


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    timeout_s = options["node_timeout_ms"] / 1000
    return {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": retry.Retry(backoff.ExponentialWithJitterBackoff(), options["client_retries"]),
    }
