"""The defects of the official client show on a real API server, on a node, as on the model.

They need a Docker engine. `fencepost` builds kube-apiserver, once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
REAL = ("--server", "kubernetes=kube-apiserver")


def test_what_leaves_two_leaders_at_work_on_the_model_does_so_on_a_real_api_server(
    tmp_path: Path,
) -> None:
    words = ("suite", "leaders", "--only", "kubernetes-request", *REAL, "--seed", "1")
    done = subprocess.run(
        [sys.executable, "-m", "fencepost", *words], capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, check=False,
    )  # fmt: skip
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 0 and "3 of 3 came out as published" in said, said
    runs = list(tmp_path.glob("results/**/run.json"))
    assert runs and all("kube-apiserver v1.20.2 on etcd" in one.read_text() for one in runs)
