"""The client in JavaScript, run by Node.js with fakes of its two libraries.

The tests on a cluster use the real ones.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[3] / "sdk/clients/node-redlock/worker.js"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")

# Print when a connection is closed, between the lines of the worker; no release is ever answered.
IOREDIS = """
const { EventEmitter } = require('events');
const fs = require('fs');
module.exports = class Redis extends EventEmitter {
  constructor(settings) {
    super();
    this.name = settings.host;
  }
  disconnect() {
    fs.writeSync(1, `${JSON.stringify({ closed: this.name })}\\n`);
    if (this.name === process.env.FAILS) throw new Error('no such socket');
  }
};
"""
REDLOCK = """
const { EventEmitter } = require('events');
module.exports = class Redlock extends EventEmitter {
  async lock() {
    const unlock = async () => {
      this.emit('clientError', new Error('Command timed out'));
      throw new Error('Unable to fully release the lock');
    };
    return { expiration: Date.now() + 1000, unlock };
  }
};
"""
SETUP = {
    "control": "setup",
    "process": 3,
    "stride": 5,
    "node": "client-1",
    "options": {"retries": 0, "retry_delay_ms": 1, "node_timeout_ms": 50},
    "servers": ["redis-1", "redis-2"],
    "addresses": {name: [name, 1] for name in ("redis-1", "redis-2", "storage")},
    "storage": "storage",
    "guard": "none",
    "write_script": "",
    "seed": "7",
    "origin_ns": 0,
}
CLOSED = ["redis-1 closed", "redis-2 closed"]


@pytest.fixture
def said(tmp_path):
    """Return the worker's output from its setup to its end, in short, and its errors by op."""
    for name, text in (("ioredis", IOREDIS), ("redlock", REDLOCK)):
        (tmp_path / f"{name}.js").write_text(text)

    def run(*messages, fails=""):
        lines = [json.dumps(m) for m in (SETUP | {"origin_ns": time.monotonic_ns()}, *messages)]
        path = "/usr/local/bin:/usr/bin:/bin"
        done = subprocess.run(
            ["node", str(WORKER)],
            input="\n".join(lines) + "\n",
            env={"NODE_PATH": str(tmp_path), "PATH": path, "FAILS": fails},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert rows.pop(0)["control"] == "ready"
        short = [
            f"{row['closed']} closed"
            if "closed" in row
            else f"{row['process']} {row['f']} {row['type']}"
            for row in rows
        ]
        return short, [row["error"] for row in rows if "error" in row]

    return run


ACQUIRE = {"f": "acquire", "value": {"lock": "orders", "ttl": 10**9}}
RELEASE = {"f": "release", "value": {"lock": "orders", "hold": "3-1"}}


def test_after_an_op_of_unknown_outcome_it_closes_and_a_successor_continues(said):
    events, errors = said(ACQUIRE, RELEASE, ACQUIRE)
    assert events == [
        "3 acquire invoke", "3 acquire ok", "3 release invoke", "3 release info",
        "3 close invoke", *CLOSED, "3 close ok",
        "8 acquire invoke", "8 acquire ok",
        "8 close invoke", *CLOSED, "8 close ok",
    ]  # fmt: skip
    assert errors == [["no-quorum", "Unable to fully release the lock"]]


def test_a_connection_whose_close_raises_keeps_no_other_open(said):
    events, errors = said(fails="redis-1")
    assert events == ["3 close invoke", *CLOSED, "3 close info"]
    assert errors == [["raised", "no such socket"]]
