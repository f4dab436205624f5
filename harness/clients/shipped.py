"""Ships the code that a client's node needs: fencepost's as one file (zipped.py), programs in other
languages and other packages' code as a tar archive.

A lock, a guard or a store of another package is sent with the package's metadata, so that the node
finds it by its entry point. The dependencies of that package must be on the node already.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

from fencepost.harness.clients.zipped import zipped
from fencepost.harness.errors import Crashed
from fencepost.harness.package import PACKAGE
from fencepost.harness.remote.remote import Remote
from fencepost.node.places import CODE, CODE_FILE
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, STORES

_PROGRAMS = ("sdk/javascript", "sdk/clients/node-redlock")
# The suffix of compiled files for the nodes' Python, Debian 12's. It ignores outdated ones.
_COMPILED = ".cpython-311.pyc"
# Time limit for a node to unpack a client's code.
_SHIP_S = 120.0
_METADATA = ("METADATA", "entry_points.txt")


def archive_for(lock: str, guard: str, store: str) -> bytes:
    """Return the archive for a test of this lock, to be unpacked into a folder of PYTHONPATH.
    Fencepost's own code is not in it (zipped.py).

    Empty text: a lock that is in no registry, whose files are sent separately (harness/userlock).
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as archive:
        for path in _PROGRAMS:
            archive.add(PACKAGE / path, arcname=f"fencepost/{path}", filter=_without_caches)
        points = (LOCKS.point(lock) if lock else None, GUARDS.point(guard), STORES.point(store))
        for point in {point.module.partition(".")[0]: point for point in points if point}.values():
            _add(archive, point)
    return buffer.getvalue()


def equip(remote: Remote, parts: Mapping[str, bytes]) -> None:
    """Put fencepost's own code on a node, and unpack each archive into its folder there, replacing
    the files of an earlier run.

    Raises:
        RemoteError: the node does not answer in time.
    """
    remote.put(CODE_FILE, zipped())
    ship(remote, parts)


def ship(remote: Remote, parts: Mapping[str, bytes]) -> None:
    """Unpack each archive into its folder on a node, replacing the files of an earlier run.

    Raises:
        RemoteError: the node does not answer in time.
    """
    for folder, archive in parts.items():
        # Next to the code: the folder of another part may not exist yet.
        tar = f"{CODE}.tar"
        remote.put(tar, archive)
        unpack = f"rm -rf {folder}; mkdir -p {folder}; tar -xf {tar} -C {folder}"
        remote.run(["bash", "-c", f"{unpack}; chmod -R a+rX {folder}"], timeout_s=_SHIP_S)


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
    """Return a member of the archive. Of compiled files, keep those that the nodes' Python can use,
    so that clients do not compile them again in each run."""
    cached = "__pycache__" in member.name and not member.isdir()
    return None if cached and not member.name.endswith(_COMPILED) else member
