"""Every script of the register shows its defect on a node's software, as `reproduce` writes it.

A script runs in a container of the nodes' image that has no network. Its packages of PyPI and npm
are installed here and lent to it. A layer adds Debian's packages that the image lacks.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from fencepost.harness.cluster import image
from fencepost.workloads.scenarios.register import standalone, versions
from fencepost.workloads.scenarios.register.row import Row
from fencepost.workloads.scenarios.register.rows import ROWS

pytestmark = pytest.mark.long

LAYER = """
RUN apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \\
      golang-go golang-etcd-server-dev libmariadb-java \\
 && rm -rf /var/lib/apt/lists/*
"""
"""Debian's packages that these scripts need in addition to the nodes' own."""
LAYERED = {"go", "/usr/share/java/mariadb-java-client.jar"}
MOUNTS = {"nats-kv-power-loss"}
"""Rows whose script mounts a file system in a file: they need this machine's loop devices."""
LOOP = (
    "--cap-add", "SYS_ADMIN", "-v", "/dev:/dev", "--device-cgroup-rule", "b 7:* rwm",
    "--device-cgroup-rule", "c 10:237 rwm", "--security-opt", "apparmor=unconfined",
    "--security-opt", "seccomp=unconfined",
)  # fmt: skip
# redis-py asks for it on Python before 3.11.3, and the markers are those of this Python.
BESIDE = ("async-timeout>=5",)
SCRIPT_S = 600
# A row that its script does not always show gets more attempts.
ATTEMPTS = 4
CONTROLLED = [row for row in ROWS if "CONTROL=1" in row.script.read_text(encoding="utf-8")]


@pytest.fixture(scope="session")
def nodes() -> str:
    return image.ensure(print)


@pytest.fixture(scope="session")
def layered(nodes: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image with the layer. Workers of xdist wait for the one that builds it."""
    name = f"{nodes}-scripts-{hashlib.sha256(LAYER.encode()).hexdigest()[:12]}"
    # The parent of a worker's folder is that of all workers.
    with Path(tmp_path_factory.getbasetemp().parent, "scripts-layer").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.there(name):
            folder = tmp_path_factory.mktemp("layer")
            (folder / "Dockerfile").write_text(f"FROM {nodes}\n{LAYER}")
            image.build(name, str(folder))
    return name


@pytest.fixture
def container(request: pytest.FixtureRequest, tmp_path: Path, lent, row: Row):
    """Return a function that runs the row's file, with these environment variables."""
    needs_layer = bool(LAYERED & {*row.programs, *row.files})
    name = request.getfixturevalue("layered" if needs_layer else "nodes")
    (tmp_path / row.script.name).write_text(standalone.text(row.script))
    packages = lent(row.ecosystem, versions.needs(row))

    def run(**changed: str) -> subprocess.CompletedProcess[str]:
        env = {"PYTHONPATH": "/packages", "NODE_PATH": "/packages/node_modules", **changed}
        return subprocess.run(
            [
                "docker", "run", "--rm", "--network", "none", "-v", f"{tmp_path}:/script:ro",
                "-v", f"{packages}:/packages:ro", *(LOOP if row.name in MOUNTS else ()),
                *(word for one in env.items() for word in ("-e", "=".join(one))),
                "--entrypoint", "tini", name, "-g", "--",
                "timeout", str(SCRIPT_S), "python3", f"/script/{row.script.name}",
            ],
            capture_output=True, text=True, errors="replace", timeout=SCRIPT_S + 60,
        )  # fmt: skip

    return run


@pytest.fixture(scope="session")
def lent():
    """Return a function that installs packages for the nodes' Python or Node.js, each set once."""
    with tempfile.TemporaryDirectory(prefix="fencepost-scripts-") as home:

        @cache
        def install(ecosystem: str, needs: tuple[str, ...]) -> str:
            folder = tempfile.mkdtemp(dir=home)
            if not needs:
                return folder
            if ecosystem == "npm":
                command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *needs]
            elif sys.version_info[:2] == (3, 11):
                pip = [sys.executable, "-m", "pip", "install", "-q", "--target", folder]
                command = [*pip, *needs, *BESIDE]
            else:
                pytest.skip("packages for the nodes' Python 3.11 are installed by the same Python")
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stderr
            return folder

        yield install


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_written_script_shows_its_defect(row, container):
    for _ in range(1 if row.runs.shown == row.runs.of else ATTEMPTS):
        ended = container()
        if ended.returncode == 1:
            break
    assert ended.returncode == 1, ended.stderr
    assert re.search(r"^AssertionError: .", ended.stderr, re.MULTILINE), ended.stderr


@pytest.mark.parametrize("row", CONTROLLED, ids=[row.name for row in CONTROLLED])
def test_the_control_of_a_written_script_shows_nothing(row, container):
    ended = container(CONTROL="1")
    assert ended.returncode == 0, ended.stderr
