"""Client libraries are imported where they are used, not where a lock is described."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.workloads.deferred import Deferred

ROOT = Path(__file__).parents[2]
CLIENTS = (
    "aetcd", "etcd3gw", "kazoo", "pottery", "psycopg", "redis", "redis_lock", "redlock",
    "requests", "urllib3",
)  # fmt: skip
DESCRIBE = f"""
import sys
for name in {CLIENTS}:
    sys.modules[name] = None  # whoever imports it gets an ImportError
from fencepost.workloads.locks.registry import LOCKS
for lock in LOCKS.values():
    lock.read_options({{}})
print(len(LOCKS))
"""


def test_every_lock_is_described_where_no_client_library_is_installed():
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", DESCRIBE], capture_output=True, text=True, env=env, check=False
    )
    assert done.stderr == ""
    assert int(done.stdout) >= 24


def test_a_deferred_module_is_imported_when_an_attribute_is_read(tmp_path, monkeypatch):
    (tmp_path / "deferred_guest.py").write_text("class Error(Exception): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    guest = Deferred("deferred_guest")
    assert "deferred_guest" not in sys.modules
    error = guest.Error
    assert sys.modules.pop("deferred_guest").Error is error
    # It is kept: the module is not looked up again.
    assert guest.Error is error


def test_a_deferred_module_that_is_missing_is_an_import_error_when_it_is_used():
    missing = Deferred("no_such_module_at_all")
    with pytest.raises(ImportError, match="no_such_module_at_all"):
        _ = missing.connect
