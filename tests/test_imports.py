"""Who imports whom: docs/design.md, section 2. Imports for types alone count as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import fencepost

SRC = Path(fencepost.__file__).parent
FOLDERS = {"checker", "harness", "hunt", "nemesis", "node", "report", "workloads"}
HUNT = ("sim", "models", "intercept", "faults", "", "story", "search", "bridge")
"""The rooms of hunt, each of which imports those before it; "" are the files at its top."""


def modules(folder: str) -> dict[str, Path]:
    """The files of a folder, by module."""
    found = {}
    for path in (SRC / folder).rglob("*.py"):
        parts = path.relative_to(SRC).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[f"fencepost.{name}"] = path
    return found


def imported(path: Path) -> Iterator[str]:
    """What a file imports of fencepost, wherever in it: modules, or names in them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fencepost"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("fencepost"))


def arrows(folder: str) -> dict[str, set[str]]:
    """What each module of a folder imports of that folder."""
    known = modules(folder)

    def home(name: str) -> str:
        return name if name in known else name.rpartition(".")[0]

    return {
        module: {home(name) for name in imported(path)} & known.keys() - {module}
        for module, path in known.items()
    }


@pytest.mark.parametrize(
    ("folder", "may"),
    [
        ("checker", set()),
        ("nemesis", set()),
        ("report", {"checker"}),
        ("hunt", {"workloads", "nemesis", "checker"}),
    ],
)
def test_a_folder_imports_only_what_lies_below_it(folder, may):
    others = {
        (module, name)
        for module, path in modules(folder).items()
        for name in imported(path)
        if name.split(".")[1] in FOLDERS - may - {folder}
    }
    assert others == set()


@pytest.mark.parametrize("folder", ["checker", "hunt", "nemesis", "report"])
def test_no_modules_import_one_another_in_a_circle(folder):
    try:
        TopologicalSorter(arrows(folder)).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_a_room_of_the_hunt_imports_rooms_before_it():
    known = modules("hunt")

    def rank(module: str) -> int:
        path = known[module].relative_to(SRC / "hunt")
        return HUNT.index(path.parts[0] if len(path.parts) > 1 else "")

    upwards = {
        (module, other)
        for module, others in arrows("hunt").items()
        for other in others
        if rank(other) > rank(module)
    }
    assert upwards == set()
