"""The code that a client's node needs, as a tar archive: ours, and a lock of another package.

Such a lock is sent with its package's metadata, so that the node finds it by its entry point. What
its package depends on must be on the node already.
"""

from __future__ import annotations

import io
import tarfile
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

from fencepost.harness.errors import Crashed
from fencepost.harness.package import PACKAGE
from fencepost.workloads.locks.registry import LOCKS

_OURS = ("__init__.py", "registry.py", "workloads")
_METADATA = ("METADATA", "entry_points.txt")


def archive_for(lock: str) -> bytes:
    """Return the archive for a test of this lock, to be unpacked into a folder of PYTHONPATH."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as archive:
        for path in _OURS:
            archive.add(PACKAGE / path, arcname=f"fencepost/{path}", filter=_without_caches)
        point = LOCKS.point(lock)
        if point is not None:
            _add(archive, point)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, point: EntryPoint) -> None:
    """Add the module or package of an entry point, and its package's metadata."""
    name = point.module.partition(".")[0]
    spec = find_spec(name)
    if spec is None or spec.origin is None or point.dist is None:
        raise Crashed(f"the files of {point.value} cannot be found: install its package again")
    path = Path(spec.origin)
    if spec.submodule_search_locations:
        archive.add(path.parent, arcname=name, filter=_without_caches)
    else:
        archive.add(path, arcname=path.name)
    for file in _METADATA:
        data = (point.dist.read_text(file) or "").encode()
        member = tarfile.TarInfo(f"{name}-{point.dist.version}.dist-info/{file}")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))


def _without_caches(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in member.name else member
