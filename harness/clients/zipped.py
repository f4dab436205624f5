"""The code of a client whose lock is a person's own, as one file that Python imports from.

Each client's node would otherwise unpack some 150 files for each run, and nodes come up and work on
one machine. What is compiled here need not be compiled by each client of each run, and is never
checked against its source there (PEP 552): the two are of one moment.
"""

from __future__ import annotations

import io
import marshal
import sys
import zipfile
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from fencepost.harness.package import PACKAGE
from fencepost.node.places import CODE

PLACE = f"{CODE}/clients.zip"
"""Where it is on a node: an entry of PYTHONPATH."""

# The harness alone reads the scenarios.
_LEFT_OUT = ("scenarios",)
# The nodes' Python, Debian 12's: of another one they would ignore what is compiled.
_NODES = "cpython-311"
_UNCHECKED = (1).to_bytes(4, "little") + bytes(8)


@cache
def zipped() -> bytes:
    """The archive; the same one as long as this process lives."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in _modules():
            name = f"fencepost/{path.relative_to(PACKAGE).as_posix()}"
            archive.writestr(name, path.read_bytes())
            if sys.implementation.cache_tag == _NODES:
                archive.writestr(f"{name}c", _compiled(path))
    return buffer.getvalue()


def _modules() -> list[Path]:
    workloads = PACKAGE / "workloads"
    found = [
        path
        for path in sorted(workloads.rglob("*.py"))
        if path.relative_to(workloads).parts[0] not in _LEFT_OUT
    ]
    base = ("__init__.py", "moved.py", "plugins.py", "registry.py")
    return [*(PACKAGE / name for name in base), *found]


def _compiled(path: Path) -> bytes:
    """What a .pyc file has: what this Python has cached of it, or compiles now."""
    code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)
    return MAGIC_NUMBER + _UNCHECKED + marshal.dumps(code)
