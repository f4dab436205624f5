"""Imports point one way: between folders, and between the rooms of a folder (docs/design.md, 2).

Every import counts, wherever it is: at the top of a file, in a function, under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "fencepost"
FOLDERS = ("checker", "harness", "hunt", "nemesis", "node", "report", "workloads")
BASE, FACE = "base", "face"
"""src/fencepost has both: what everything may import, and what imports everything."""
IN_FACE = {"fencepost", "fencepost.__main__", "fencepost.plugins", "fencepost.pytest_plugin"}
# The command line's entry: fencepost.__main__ and the console script call it.
IN_FACE |= {"fencepost.harness.__main__"}
# What a folder may import. Each may import itself and the base.
MAY = {
    "checker": set(),
    "nemesis": set(),
    "node": set(),
    "workloads": {"checker"},
    "report": {"checker"},
    "hunt": {"checker", "nemesis", "workloads"},
    "harness": {"checker", "hunt", "nemesis", "node", "report", "workloads"},
}


def files() -> Iterator[tuple[str, Path]]:
    """Yield every module by its name; Path.rglob does not follow the links to folders."""
    for folder in ("", *FOLDERS):
        found = (PACKAGE / folder).rglob("*.py") if folder else PACKAGE.glob("*.py")
        # The catalogue has files of users, which import the package as a user does.
        found = (path for path in found if path.parent != PACKAGE / "workloads" / "defects")
        for path in found:
            if path.parent.name == "defects":
                continue  # user locks, which import the face as users do
            name = ".".join(("fencepost", *path.relative_to(PACKAGE).with_suffix("").parts))
            yield name.removesuffix(".__init__"), path


@cache
def modules() -> dict[str, Path]:
    return dict(files())


@cache
def imports() -> list[tuple[str, str]]:
    """Return each import of one module by another."""
    known, found = modules(), []
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{each.name}" for each in node.names]
                found += [(name, each if each in known else node.module) for each in names]
            elif isinstance(node, ast.Import):
                found += [(name, each.name) for each in node.names]
    return [(one, other) for one, other in found if other in known and one != other]


def room(module: str, depth: int) -> str:
    """Return the room of a module: its folder, or its folder in that one; with depth 0, itself."""
    if not depth:
        return module
    if module in IN_FACE:
        return FACE
    parts = module.split(".")[1:]
    if modules()[module].name != "__init__.py":
        parts = parts[:-1]
    return "/".join(parts[:depth]) or BASE


def arrows(depth: int) -> dict[str, dict[str, str]]:
    """Return for each room those it imports, each with an import as an example."""
    found: dict[str, dict[str, str]] = {}
    for one, other in imports():
        near, far = room(one, depth), room(other, depth)
        if near != far:
            found.setdefault(near, {})[far] = f"{one} imports {other}"
    return found


def cycle(graph: dict[str, dict[str, str]]) -> list[str]:
    """Return the imports of a cycle between rooms; empty if there is none."""
    done: set[str] = set()

    def follow(here: str, path: list[str]) -> list[str]:
        if here in path:
            ring = [*path[path.index(here) :], here]
            return [graph[a][b] for a, b in pairwise(ring)]
        if here in done:
            return []
        for far in graph.get(here, {}):
            if ring := follow(far, [*path, here]):
                return ring
        done.add(here)
        return []

    return next((ring for here in graph if (ring := follow(here, []))), [])


def test_the_graph_is_that_of_the_whole_package():
    assert len(modules()) > 500 and len(imports()) > 2000
    assert ("fencepost.checker.liveness", "fencepost.checker.verdict") in imports()
    assert {room(name, 1) for name in modules()} == {*FOLDERS, BASE, FACE}


def test_a_cycle_is_found_and_named_by_its_imports():
    graph = {"a": {"b": "a.x imports b.y"}, "b": {"c": "b.y imports c"}, "c": {"b": "c imports b"}}
    assert cycle(graph) == ["b.y imports c", "c imports b"]
    assert cycle({"a": {"b": "", "c": ""}, "b": {"c": ""}, "c": {}}) == []


@pytest.mark.parametrize("folder", MAY)
def test_a_folder_imports_only_what_lies_below_it(folder):
    wrong = {far: why for far, why in arrows(1).get(folder, {}).items() if far != BASE}
    assert {far: why for far, why in wrong.items() if far not in MAY[folder]} == {}


def test_the_base_imports_nothing_but_itself():
    assert arrows(1).get(BASE, {}) == {}


@pytest.mark.parametrize("depth", [1, 2])
def test_no_rooms_import_one_another_in_a_circle(depth):
    assert cycle(arrows(depth)) == []


def test_no_modules_import_one_another_in_a_circle():
    below = {one: others for one, others in arrows(0).items() if one not in IN_FACE}
    assert cycle(below) == []


def test_lincheck_imports_the_standard_library_and_the_base_alone():
    far = {other for one, other in imports() if one.startswith("fencepost.checker.lincheck")}
    assert {one for one in far if "lincheck" not in one} <= {
        "fencepost.output",
        "fencepost.processors",
        "fencepost.strictjson",
    }
