"""Streams runs as one zip file: the history of a long run may not fit into memory."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, cast

from fencepost.harness.web.place import files

_CHUNK = 1 << 18
_OLDEST = (1980, 1, 1, 0, 0, 0)
_NEWEST = (2107, 12, 31, 23, 59, 58)
"""The times that the zip format can store lie between these."""


class _Buffer:
    """Holds the bytes that were written and not sent yet."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        data, self._pieces = b"".join(self._pieces), []
        return data


def zipped(folders: Sequence[Path]) -> Iterator[bytes]:
    """Yield the archive in pieces. Its names are TEST/TIME/..., as in a results folder.

    For a run in progress, it has the present content of the files.
    """
    buffer = _Buffer()
    with zipfile.ZipFile(cast(IO[bytes], buffer), "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in folders:
            for name, found in files(folder):
                try:
                    source = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                except OSError:
                    continue  # the file was replaced meanwhile
                modified = datetime.fromtimestamp(found.st_mtime).timetuple()[:6]
                info = zipfile.ZipInfo(
                    _portable(f"{folder.parent.name}/{folder.name}/{name}"),
                    min(max(_OLDEST, modified), _NEWEST),
                )
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o100644 << 16
                with (
                    os.fdopen(source, "rb") as file,
                    archive.open(info, "w", force_zip64=True) as entry,
                ):
                    while data := file.read(_CHUNK):
                        entry.write(data)
                        yield buffer.take()
                yield buffer.take()
    yield buffer.take()


def _portable(name: str) -> str:
    """Return a name that every program unpacks into its folder: in UTF-8, and without backslashes,
    which Windows takes for slashes."""
    return name.encode(errors="replace").decode().replace("\\", "_")
