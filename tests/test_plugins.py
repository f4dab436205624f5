"""The names that authors of plug-ins import, and those of version 0.1.0."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from fencepost import moved, plugins

FOLDERS = ("checker", "compose", "harness", "hunt", "nemesis", "node", "report", "workloads")
SRC = Path(__file__).parents[1] / "src"


def python(code: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, cwd=SRC)


def test_every_public_name_of_plugins_can_be_imported():
    assert [name for name in plugins.__all__ if not hasattr(plugins, name)] == []
    assert plugins.__all__ == sorted(plugins.__all__)


def test_a_name_that_plugins_does_not_have_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'fencepost\.plugins' has no attribute 'Nemesi'"):
        _ = plugins.Nemesi


def test_plugins_loads_nothing_before_it_is_used():
    done = python("import sys, fencepost.plugins; print(*sys.modules)")
    loaded = {name for name in done.stdout.split() if name.startswith("fencepost.")}
    assert loaded == {"fencepost.moved", "fencepost.plugins"}


@pytest.mark.parametrize("old", moved._NOW)
def test_a_module_can_be_imported_by_its_old_name(old, capsys):
    new = moved.today(f"fencepost.{old}")
    assert import_module(f"fencepost.{old}") is import_module(new)
    assert import_module(new).__spec__.name == new


def test_an_old_name_writes_one_line_that_says_the_new_one():
    done = python("from fencepost.compose.node import kind, watch")
    assert done.returncode == 0
    assert done.stderr == (
        "fencepost: fencepost.compose.node is now fencepost.node; "
        "fencepost.plugins has what plug-ins need\n"
    )


def test_the_module_history_of_the_last_version_has_its_names_where_it_is_a_package_now():
    done = python("from fencepost.checker.history import History; print(History.__module__)")
    assert done.stdout == "fencepost.checker.history.history\n"
    assert done.stderr.count("\n") == 1 and "is now" in done.stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imported_under_its_bare_name_refuses_and_names_the_right_one(folder):
    code = f"import sys; sys.path.insert(0, {str(SRC.parent)!r}); import {folder}"
    last = python(code).stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {folder} is fencepost.{folder}: import ")
