"""redis-py's client with its own defaults, except for the settings that a user of a lock has to
choose.

It connects to one server, or to the primary that Sentinel names.
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

CLIENT_RETRIES = "number of automatic retries of redis-py's client (its own default: 10)"
"""The option `client_retries` of each lock with this client."""


_SENTINEL_PORT, _GROUP = 26379, "fencepost"
# A primary that is cut off is silent, and so is its sentinel: the next one is asked soon.
_SENTINEL_S = 0.2


def connect(env: Env, node: str, options: Mapping[str, Any]) -> redis.Redis:
    """Connect to a server. `options`: node_timeout_ms; client_retries, the number of automatic
    retries."""
    host, port = env.address(node)
    return redis.Redis(host=host, port=port, **_chosen(options))


def primary(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> redis.Redis:
    """Return the client of the server that the sentinels on these nodes name as the primary.

    It asks the first sentinel that answers, and asks again for each new connection. `options`: as
    for `connect`.
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
