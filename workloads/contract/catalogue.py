"""The catalogue of lock defects: every file of workloads/defects, and those of other packages.

A package adds a file of its own with an entry point:

    [project.entry-points."fencepost.defects"]
    my-defect = "my_package.my_defect:DEFECT"

Files are parsed and not imported, because each may import libraries that only the clients' nodes
have. So a file writes the arguments of its `DEFECT` as literals. Files whose name begins with an
underscore are modules that several of them import.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from fencepost import syntax
from fencepost.workloads.contract.defect import FAMILIES, Defect

FOLDER = Path(__file__).parent.parent / "defects"
GROUP = "fencepost.defects"
LOCK, TWIN = "Lock", "Sound"
"""The classes of a file: the lock that has the defect, and its twin that does not."""


@dataclass(frozen=True)
class Listed:
    """A defect of the catalogue with its file."""

    defect: Defect
    file: Path

    @property
    def classes(self) -> tuple[str, ...]:
        return (LOCK, TWIN) if self.defect.twin else (LOCK,)

    def lock(self, name: str) -> str:
        """Return one of its classes as a user lock, FILE:NAME."""
        return f"{self.file}:{name}"


def catalogue() -> dict[str, Listed]:
    """Return every defect by name, in the order of the families.

    Raises:
        ValueError: a file has no valid DEFECT, or two have one name.
    """
    found: dict[str, Listed] = {}
    for file in _files():
        one = read(file)
        if one.defect.name in found:
            raise ValueError(f"{file}: the name {one.defect.name} is taken")
        found[one.defect.name] = one
    order = list(FAMILIES)
    return dict(sorted(found.items(), key=lambda row: (order.index(row[1].defect.family), row[0])))


def _files() -> Iterator[Path]:
    yield from sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("_"))
    for point in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        spec = find_spec(point.module)
        if spec is None or spec.origin is None:
            raise ValueError(f"{point.value}: its package has no such module: install it again")
        yield Path(spec.origin)


def read(file: Path) -> Listed:
    """Return the defect of a file.

    Raises:
        ValueError: it has no valid one; the text names the file.
    """
    module = syntax.tree(file.read_bytes(), file.name)
    call = next((value for name, value in _assigned(module) if name == "DEFECT"), None)
    if not isinstance(call, ast.Call) or call.args:
        raise ValueError(f"{file} has no DEFECT = Defect(name=..., ...)")
    try:
        given = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        defect = Defect(**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file}: {error}") from error
    names = {name for name, _ in _assigned(module)} | _defined(module)
    for name in Listed(defect, file).classes:
        if name not in names:
            raise ValueError(f"{file} has no class {name}")
    return Listed(defect, file)


def _assigned(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in module.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value


def _defined(module: ast.Module) -> set[str]:
    """Return the classes of a module, and the names that it imports."""
    found = {node.name for node in module.body if isinstance(node, ast.ClassDef)}
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {one.asname or one.name for one in node.names}
    return found
