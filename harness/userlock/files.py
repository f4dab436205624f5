"""The files of a lock of one's own: found, bounded, copied into a run's folder, and sent to nodes.

They are known by their path below the lock's folder, with slashes.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from fencepost.harness.errors import BadArguments, Crashed

MOST_BYTES = 256 << 20
MOST_FILES = 20_000
# What no lock needs on a node, and what may be very large.
_LEFT_OUT = frozenset({"__pycache__", ".git", ".hg", ".venv", ".mypy_cache", ".pytest_cache"})


def tree(folder: Path, within: str = "") -> dict[str, Path]:
    """Every file of a folder by its path, below `within`; without caches and repositories' data.

    Raises:
        BadArguments: it is no folder, cannot be read, or has more than a node is to be sent.
    """
    if not folder.is_dir():
        raise BadArguments(f"{folder} is no folder")
    prefix = f"{within}/" if within else ""
    found: dict[str, Path] = {}
    size = 0
    for file in _files(folder):
        found[prefix + file.relative_to(folder).as_posix()] = file
        size += file.stat().st_size
        if size > MOST_BYTES or len(found) > MOST_FILES:
            raise BadArguments(
                f"{folder} has more than {MOST_BYTES >> 20} MB or {MOST_FILES} files: it goes to "
                "each client's node as a whole, so name a folder with what the lock needs"
            )
    return dict(sorted(found.items()))


def _files(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise BadArguments(f"{folder} cannot be read: {error.strerror}") from error
    for entry in entries:
        if entry.is_dir() and entry.name not in _LEFT_OUT and not entry.is_symlink():
            yield from _files(entry)
        elif entry.is_file():
            yield entry


def copied(files: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Copy files into a folder; return where they are there.

    Raises:
        Crashed: a file cannot be read, or the folder cannot be written.
    """
    found = {}
    for name, file in files.items():
        found[name] = folder / name
        try:
            found[name].parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, found[name])
        except OSError as error:
            raise Crashed(f"{file} cannot be copied to {folder}: {error.strerror}") from error
    return found


def archive(files: Mapping[str, Path], within: str = "") -> bytes:
    """The files as a tar archive, each with its rights; what a link leads to, and not the link.

    `within` is a folder that their paths begin with, by its path from the root on.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as tar:
        for name, file in files.items():
            tar.add(file, arcname=f"{within}/{name}".lstrip("/"), filter=_nobodys)
    return buffer.getvalue()


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
