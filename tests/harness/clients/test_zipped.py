"""The imports of clients are one compiled archive, from which they start."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

from fencepost.harness.clients import zipped

ALL = """
import sys
import fencepost, fencepost.workloads.client.pump, fencepost.workloads.client.program
assert fencepost.Grant and fencepost.Failed
print(fencepost.__file__)
print(fencepost.workloads.client.program.__cached__)
"""


@pytest.fixture
def archive(tmp_path):
    """Return the archive at the place where a node would have it."""
    path = tmp_path / "clients.zip"
    path.write_bytes(zipped.zipped())
    return path


def test_a_client_is_imported_from_it_and_nothing_of_it_is_compiled(archive):
    if sys.implementation.cache_tag != "cpython-311":
        pytest.skip("nodes have another Python, and compile for themselves")
    done = subprocess.run(
        [sys.executable, "-c", ALL],
        env={"PYTHONPATH": str(archive)},
        cwd=archive.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    package, program = done.stdout.split()
    assert package == f"{archive}/fencepost/__init__.pyc"
    assert program == f"{archive}/fencepost/workloads/client/program.pyc"


def test_every_module_has_its_source_except_those_that_no_client_needs(archive):
    names = zipfile.ZipFile(archive).namelist()
    sources = [name for name in names if name.endswith(".py")]
    assert "fencepost/workloads/locks/redis.py" in sources
    assert not [name for name in names if "/scenarios/" in name or "/programs/" in name]
    if sys.implementation.cache_tag == "cpython-311":
        assert sorted(names) == sorted([*sources, *(f"{name}c" for name in sources)])


def test_another_python_ships_sources_alone(monkeypatch):
    monkeypatch.setattr(zipped, "_NODES", "cpython-999")
    zipped.zipped.cache_clear()
    try:
        names = zipfile.ZipFile(zipped.io.BytesIO(zipped.zipped())).namelist()
    finally:
        zipped.zipped.cache_clear()
    assert names and all(name.endswith(".py") for name in names)
