"""A run is killed and healed next to objects of others, which stay as they are."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.workloads.client import PROGRAM
from tests.cluster import own
from tests.cluster.healed import healed
from tests.cluster.test_command import RUN, command, wait_for_ops

__all__ = ["command"]  # a fixture


@pytest.fixture
def others():
    """Create another user's objects on this machine that conflict, and a check that they exist."""

    def sh(command):
        return subprocess.run(
            command, shell=True, capture_output=True, text=True, check=False
        ).stdout.strip()

    name, rule = "fencepost-somebody-1", "INPUT -s 192.0.2.7 -j DROP -m comment --comment FENCEPOST"
    # A client's program has this command line, and is stopped.
    process = subprocess.Popen([sys.executable, "-c", "input()", PROGRAM])
    process.send_signal(signal.SIGSTOP)
    sh(f"iptables -w -A {rule}; iptables -w -N FENCEPOST-INBOX")
    sh(f"docker network create {name}")
    sh(f"docker run -d --name {name} --network {name} --entrypoint sleep fencepost-node 600")

    def there():
        stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        rules = sh("iptables -w -S")
        return {
            "process": stat == "T",
            "rule": "-s 192.0.2.7/32" in rules,
            "chain": "-N FENCEPOST-INBOX" in rules,
            "container": sh(f"docker inspect -f '{{{{.State.Running}}}}' {name}") == "true",
            "network": sh(f"docker network inspect -f '{{{{.Name}}}}' {name}") == name,
        }

    yield there
    process.kill()
    process.wait()
    sh(f"iptables -w -D {rule}; iptables -w -X FENCEPOST-INBOX")
    sh(f"docker rm -f {name}; docker network rm {name}")


def test_a_killed_run_is_healed_next_to_objects_of_others_and_its_history_analyzed(
    command, tmp_path, others
):
    assert all(others().values()), others()
    process = command(*RUN, wait=False)
    run = wait_for_ops(tmp_path, 200)
    process.kill()
    process.communicate()
    assert own.nodes()

    code, out = healed(command)
    assert code == 0 and "Removed" in out, out
    assert own.nodes() == []
    assert all(others().values()), others()
    code, out = command("heal", "--check")
    assert code == 0 and "Nothing is left" in out, out

    code, out = command("analyze", str(run))
    assert code in (1, 2), out
    results = json.loads((run / "results.json").read_text())
    assert results["valid"] is not True
    assert results["stats"]["ops"] > 50
    times = [json.loads(line)["time"] for line in (run / "history.jsonl").open()]
    assert times == sorted(times)
