"""Fencepost's code for clients and for the resource's server, as one file that Python imports from.

Otherwise each client's node would unpack some 150 files for each run, and the nodes share one
machine. Clients do not compile files that are compiled here, and never check them against their
sources (PEP 552): both were written at the same time.
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

# Only the harness reads the scenarios.
_LEFT_OUT = ("scenarios",)
# The nodes' Python, Debian 12's: it ignores compiled files of other versions.
_NODES = "cpython-311"
_UNCHECKED = (1).to_bytes(4, "little") + bytes(8)


@cache
def zipped() -> bytes:
    """Return the archive; the same one throughout this process."""
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
    """Return the content of a .pyc file: from this Python's cache, or compiled now."""
    code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)
    return MAGIC_NUMBER + _UNCHECKED + marshal.dumps(code)
