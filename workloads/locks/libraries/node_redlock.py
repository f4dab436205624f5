"""npm's redlock: its client is a program in JavaScript (sdk/clients/node-redlock)."""

from __future__ import annotations

from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option

LOCK = LockType(
    name="node-redlock",
    what="library redlock (npm, on ioredis): Redlock on five Redis servers",
    make=None,
    servers=5,
    options={
        "retries": Option(10, what="number of retries before it gives up"),
        "retry_delay_ms": Option(200, least=1, what="average time between two tries"),
        "node_timeout_ms": Option(50, least=1, what="timeout for one server"),
    },
    promises={"minority": True},
    library="node-redlock",
    package="redlock",
    port="redlock-npm",
    program=(
        "env", "NODE_PATH=/opt/fencepost/libraries/node-redlock/node_modules", "nodejs",
        "/run/fencepost/code/fencepost/sdk/clients/node-redlock/worker.js",
    ),
)  # fmt: skip
