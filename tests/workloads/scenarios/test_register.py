"""Every row of the register has a script, which shows its defect in the installed version."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.workloads.scenarios.defects import DEFECTS
from fencepost.workloads.scenarios.register import issue, standalone
from fencepost.workloads.scenarios.register.row import IMPACTS, SCRIPTS, Row, numbers
from fencepost.workloads.scenarios.register.rows import ROWS

PYTHON = os.environ.get("REGISTER_PYTHON", sys.executable)
"""Runs the scripts: a virtual environment may have packages that the tests' own lacks."""

MENDED_RELEASE = """
import redis.lock
def release(self):
    token = self.local.token
    if token is None:
        raise redis.exceptions.LockError("not owned")
    self.do_release(token)
    self.local.token = None
redis.lock.Lock.release = release
"""
MENDED_ZERO = """
import redis.lock
made = redis.lock.Lock.__init__
def init(self, client, name, timeout=None, **others):
    made(self, client, name, timeout=timeout or None, **others)
redis.lock.Lock.__init__ = init
"""


def lacks(row: Row) -> str:
    """Return what this machine lacks to run a script; '' if nothing."""
    asked = f"import importlib.util as u; print([m for m in {row.modules!r} if not u.find_spec(m)])"
    found = subprocess.run([PYTHON, "-c", asked], capture_output=True, text=True, check=True)
    modules = ast.literal_eval(found.stdout)
    path = f"{os.environ['PATH']}:/usr/sbin:/usr/lib/postgresql/15/bin"
    programs = [name for name in row.programs if not shutil.which(name, path=path)]
    files = [name for name in row.files if not Path(name).exists()]
    return ", ".join(modules + programs + files) or ", ".join(p for p in row.npm if not resolves(p))


def resolves(package: str) -> bool:
    asked = subprocess.run(["node", "-p", f"require.resolve({package!r})"], capture_output=True)
    return not asked.returncode


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the file of a row, as `fencepost reproduce` writes it."""

    def ran(row: Row, **changed: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / row.script.name
        file.write_text(standalone.text(row.script))
        path = f"{os.environ['PATH']}:/usr/sbin"
        return subprocess.run(
            [PYTHON, file], capture_output=True, text=True, timeout=900,
            env={**os.environ, "PATH": path, **changed},
        )  # fmt: skip

    return ran


def concerns_installed(row: Row) -> bool:
    return not row.mended or row.concerns(installed(row))


def installed(row: Row) -> str:
    """Return the version of a row's package, or of its server: a program, or a jar, for which
    Debian has a link with the version."""
    if row.ecosystem == "npm":
        places = [Path(one) / row.package for one in os.environ["NODE_PATH"].split(":")]
        found = next(one for one in places if one.exists()) / "package.json"
        return json.loads(found.read_text())["version"]
    if row.ecosystem != "pypi" and row.files and row.files[0].endswith(".jar"):
        jar = Path(row.files[0])
        (link,) = jar.parent.glob(f"{jar.stem}-[0-9]*.jar")
        return re.findall(r"\d[\d.]+\d", link.name)[0]
    asked = f"import importlib.metadata as m; print(m.version({row.package!r}))"
    words = [PYTHON, "-c", asked] if row.ecosystem == "pypi" else [row.programs[0], "--version"]
    said = subprocess.run(words, capture_output=True, text=True, check=True)
    return re.findall(r"\d[\w.]+", said.stdout)[0]


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_script_shows_its_defect_in_the_installed_version_unless_it_is_mended_there(row, run):
    if missing := lacks(row):
        pytest.skip(f"not on this machine: {missing}")
    ended = run(row)
    if not concerns_installed(row):
        assert ended.returncode == 0, ended.stderr
        return
    assert ended.returncode == 1, ended.stderr
    assert re.search(r"^AssertionError: .", ended.stderr, re.MULTILINE), ended.stderr


CONTROLLED = [row for row in ROWS if "CONTROL=1" in row.script.read_text(encoding="utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("row", CONTROLLED, ids=[row.name for row in CONTROLLED])
def test_the_control_of_a_script_exits_with_0(row, run):
    if missing := lacks(row):
        pytest.skip(f"not on this machine: {missing}")
    ended = run(row, CONTROL="1")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mended"),
    [("redis_py_release_forgets", MENDED_RELEASE), ("redis_py_reacquire_zero", MENDED_ZERO)],
)
def test_a_script_exits_with_0_once_the_library_is_mended(tmp_path, run, name, mended):
    if not shutil.which("redis-server"):
        pytest.skip("not on this machine: redis-server")
    (tmp_path / "sitecustomize.py").write_text(mended)
    row = next(one for one in ROWS if one.script.stem == name)
    ended = run(row, PYTHONPATH=str(tmp_path))
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_a_script_runs_where_it_lies_as_its_file_does():
    if not shutil.which("redis-server"):
        pytest.skip("not on this machine: redis-server")
    script = SCRIPTS / "redis_py_reacquire_zero.py"
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1 and "AssertionError: reacquire()" in ended.stderr, ended.stderr


def test_every_script_belongs_to_one_row_and_uses_the_modules_that_the_row_names():
    assert sorted(row.script.name for row in ROWS) == sorted(f.name for f in SCRIPTS.glob("*.py"))
    for row in ROWS:
        content = standalone.text(row.script)
        assert all(f"import {name}" in content or f"from {name} " in content or name in content
                   for name in row.modules)  # fmt: skip


def test_a_row_names_a_known_impact_and_a_defect_of_the_track_record():
    names = {defect.name for defect in DEFECTS} | {""}
    for row in ROWS:
        assert row.impact in IMPACTS and row.track_record in names
        assert list(row.versions) == sorted(row.versions, key=numbers)
        assert 0 < row.runs.shown <= row.runs.of


def test_the_text_of_an_issue_has_what_a_maintainer_asks_for():
    for row in ROWS:
        said = issue.text(row, row.script.name)
        assert row.versions[-1] in said and row.script.name in said
        for part in (row.happens, row.expected, row.why, row.fix, row.thread):
            assert part in said


@pytest.mark.parametrize(
    ("version", "concerned"),
    [("1.9", False), ("2", True), ("2.0.0", True), ("v2.10rc1", True), ("3.0", False)],
)
def test_a_row_concerns_the_versions_from_the_first_shown_to_the_mended(version, concerned):
    row = Row("", "", "", ("2.0", "2.9"), *[""] * 6, (), (), ROWS[0].runs, mended="3")
    assert row.concerns(version) is concerned


def test_without_a_known_fix_a_newer_version_is_concerned():
    row = Row("", "", "", ("2.0",), *[""] * 6, (), (), ROWS[0].runs)
    assert row.concerns("99") and not row.concerns("1.99")
