"""External etcd and ZooKeeper servers, one each, in images without a shell.

They are queried by their kind's protocol, faulted with receipts, judged, and left unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.bare import bare, docker
from tests.cluster.healed import command as fencepost
from tests.cluster.kept import Kept

NODE = "db1"
_ETCD = (
    "cp -L /usr/bin/etcd /x/",
    'CMD ["/etcd","--data-dir","/data","--listen-client-urls","http://0.0.0.0:2379",'
    '"--advertise-client-urls","http://127.0.0.1:2379"]',
)
# The image's own configuration: port, folder, and a tick that allows leases of 2 s.
_ZOOKEEPER = (
    # Some of its links lead to files that a server without a screen does not have.
    "cp -rL $(dirname $(dirname $(readlink -f /usr/bin/java))) /x/java 2> /dev/null || true;"
    "mkdir -p /x/usr/share/java; cp -L /usr/share/java/*.jar /x/usr/share/java/",
    'CMD ["/java/bin/java","-Xmx128m","-Dzookeeper.admin.enableServer=false","-cp",'
    '"/usr/share/java/zookeeper.jar","org.apache.zookeeper.server.ZooKeeperServerMain",'
    '"2181","/data","500"]',
)
SCHEDULE = [
    {"at_s": 0.5, "duration_s": 1, "fault": f"partition:{NODE}"},
    {"at_s": 2.5, "duration_s": 1, "fault": f"pause:{NODE}"},
    {"at_s": 4.5, "duration_s": 0.5, "fault": f"kill:{NODE}"},
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schedule.json").write_text(json.dumps(SCHEDULE))
    return tmp_path


@pytest.fixture(params=["etcd", "zookeeper"])
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kind of the server that runs in the container NODE."""
    take, run = {"etcd": _ETCD, "zookeeper": _ZOOKEEPER}[request.param]
    name = f"fencepost-test-bare-{request.param}"
    with bare(name, take, [run]):
        docker("run", "-d", "--name", NODE, name)
        try:
            yield request.param
        finally:
            docker("rm", "-f", NODE, check=False)


def test_a_server_alone_is_cut_off_paused_and_killed_with_receipts(place, kind):
    before, changed = Kept(NODE), docker("diff", NODE)
    code, said = fencepost(
        "test", kind, "--containers", NODE, "--time", "8s", "--seed", "1", "--concurrency", "2",
        "--hold", "0..50ms", "--think", "0..50ms", "--schedule", "schedule.json",
    )  # fmt: skip
    assert code == 0, said
    # It answers by its kind's protocol, which is more than listening on its port.
    assert "does not answer as" not in said, said
    folder = place / "results" / "latest"
    found = json.loads((folder / "results.json").read_text())
    assert found["valid"] is True and found["stats"]["holds"] > 10, said
    assert [fault["family"] for fault in found["faults"]] == ["partition", "pause", "kill"]
    assert all(fault["proved"] and fault["healed"] for fault in found["faults"]), found["faults"]
    versions = json.loads((folder / "run.json").read_text())["versions"]
    assert any(kind in text.lower() for text in versions.values())
    assert not before.changed()
    added = set(docker("diff", NODE).splitlines()) - set(changed.splitlines())
    assert not [line for line in added if "/data" not in line and "/tmp" not in line], added
