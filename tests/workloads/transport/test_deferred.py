"""Client libraries are imported where they are used, not where a lock is described."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.transport.deferred import Deferred, load

ROOT = Path(__file__).parents[3]
CLIENTS = (
    "aetcd", "etcd3gw", "kazoo", "pottery", "psycopg", "redis", "redis_lock", "redlock",
    "requests", "urllib3",
)  # fmt: skip
WITHOUT_CLIENTS = f"""
import sys
from random import Random
from threading import Lock
from types import SimpleNamespace
for name in {CLIENTS}:
    sys.modules[name] = None  # whoever imports it gets an ImportError
from fencepost.workloads.locks.registry import LOCKS
"""
DESCRIBE = """
for lock in LOCKS.values():
    lock.read_options({})
    print(lock.name)
"""
MAKE = """
env = SimpleNamespace(
    now=None, random=Random(1), address=lambda node: (node, 1), pool=None,
    connect=lambda node, timeout_s: None, renewed=None, lost=None, mutex=Lock,
)
for lock in LOCKS.values():
    if lock.make is not None:
        try:
            lock.make(env, ["a"] * lock.servers, lock.read_options({}))
        except ImportError:
            print(lock.name)
"""


def printed(program):
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", WITHOUT_CLIENTS + program]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_every_lock_is_described_where_no_client_library_is_installed():
    assert printed(DESCRIBE) == set(LOCKS)


def test_a_lock_imports_its_client_library_when_it_is_made_and_not_in_its_first_acquire():
    # Locks on Redis get their connections, those on PostgreSQL use plain sockets, and a lock with a
    # program makes its own.
    others = {name for name, lock in LOCKS.items() if lock.kind != "redis" or lock.library}
    clients = {name for name in others if not LOCKS[name].dials}
    assert printed(MAKE) == {name for name in clients if LOCKS[name].make is not None}


def test_a_deferred_module_is_imported_when_an_attribute_is_read(tmp_path, monkeypatch):
    (tmp_path / "deferred_guest.py").write_text("class Error(Exception): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    guest = Deferred("deferred_guest")
    assert "deferred_guest" not in sys.modules
    error = guest.Error
    assert sys.modules.pop("deferred_guest").Error is error
    # It is cached: the module is not looked up again.
    assert guest.Error is error


def test_a_deferred_module_that_is_missing_is_an_import_error_when_it_is_used():
    missing = Deferred("no_such_module_at_all")
    with pytest.raises(ImportError, match="no_such_module_at_all"):
        _ = missing.connect
    with pytest.raises(ImportError, match="no_such_module_at_all"):
        load(missing)
