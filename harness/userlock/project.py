"""Creates a project from templates: a lock, its fencepost.toml, a test and a workflow.

Existing files are not changed.
"""

from __future__ import annotations

import errno
from pathlib import Path

from fencepost.atomic_write import replace
from fencepost.harness.errors import BadArguments, Crashed

TEMPLATES = Path(__file__).parent / "templates"
PLACES = {
    "fencepost.toml": "fencepost.toml",
    "mylock.py": "mylock.py",
    "test_mylock.py": "test_mylock.py",
    "fencepost.yml": ".github/workflows/fencepost.yml",
}
"""The path of each template's file below the project's folder."""
_ASYNCIO = "mylock_asyncio.py"
_WRONG_FOLDER = frozenset({
    errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP,
    errno.ENAMETOOLONG,
})  # fmt: skip
"""Errors of a folder that was named wrongly."""


def begin(folder: Path, coroutines: bool = False) -> tuple[list[Path], list[Path]]:
    """Write the missing files; return those that were written and those that existed already.
    `coroutines`: the example lock's verbs are coroutines.

    Raises:
        BadArguments: there can be no such folder, or this user may not write it.
        Crashed: a file cannot be written: the disk is full. No part of it is left.
    """
    written, existing = [], []
    for template, place in PLACES.items():
        path = folder / place
        name = _ASYNCIO if coroutines and template == "mylock.py" else template
        text = (TEMPLATES / f"{name}.in").read_text(encoding="utf-8")
        if path.exists() or path.is_symlink():
            existing.append(path)
            continue
        _write(path, text)
        written.append(path)
    return written, existing


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written completely or not at all: the next `init` keeps a file that exists.
        replace(path, [text.encode()])
    except OSError as error:
        kind = BadArguments if error.errno in _WRONG_FOLDER else Crashed
        raise kind(f"cannot write {path}: {error.strerror}") from error
