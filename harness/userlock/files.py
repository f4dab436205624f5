"""Finds the files of a user lock, limits their size, copies them and packs them for the nodes.

Files are named by their path below the lock's folder, with slashes.
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
# Folders that no lock needs on a node and that may be very large.
_LEFT_OUT = frozenset({"__pycache__", ".git", ".hg", ".venv", ".mypy_cache", ".pytest_cache"})


def tree(folder: Path, within: str = "") -> dict[str, Path]:
    """Return the files of a folder by path, below `within`, without caches and repository data.

    Raises:
        BadArguments: it is not a folder, cannot be read, or is too large to send to a node.
    """
    if not folder.is_dir():
        raise BadArguments(f"{folder} is not a folder")
    prefix = f"{within}/" if within else ""
    found: dict[str, Path] = {}
    size = 0
    for file in _files(folder):
        found[prefix + file.relative_to(folder).as_posix()] = file
        size += file.stat().st_size
        if size > MOST_BYTES or len(found) > MOST_FILES:
            raise BadArguments(
                f"{folder} has more than {MOST_BYTES >> 20} MB or {MOST_FILES} files, too many to "
                "send to each client's node: name a folder with only the files that the lock needs"
            )
    return dict(sorted(found.items()))


def _files(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise BadArguments(f"cannot read {folder}: {error.strerror}") from error
    for entry in entries:
        if entry.is_dir() and entry.name not in _LEFT_OUT and not entry.is_symlink():
            yield from _files(entry)
        elif entry.is_file():
            yield entry


def copied(files: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Copy files into a folder; return the copies by name.

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
            raise Crashed(f"cannot copy {file} to {folder}: {error.strerror}") from error
    return found


def archive(files: Mapping[str, Path], within: str = "") -> bytes:
    """Return the files as a tar archive with their permissions; links are followed.

    `within` is the absolute path of the folder that they are unpacked into.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as tar:
        for name, file in files.items():
            tar.add(file, arcname=f"{within}/{name}".lstrip("/"), filter=_as_root)
    return buffer.getvalue()


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
