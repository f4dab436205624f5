"""Resolves names from requests to paths in the results folder, and to nothing outside of it.

A name may try to escape: with `..`, as an absolute path, with encoded slashes (which the server
has decoded by now), or through a symbolic link in the folder. So the parts of a name are checked
first, and then the file system resolves the path. Only files in the folder of a run are served: a
results folder may contain other files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from fencepost.harness.results import results, run_index


class NotHere(LookupError):
    """The results folder has no such file or run."""


def run(name: str) -> Path:
    """Return the folder of TEST/TIME. Raises NotHere if there is none."""
    place, run = _inside(name)
    if place != run:
        raise NotHere(f"{name} is not a run")
    return run


def file(name: str) -> tuple[Path, Path]:
    """Return the file of a run by its path, TEST/TIME/..., and the folder of the run.

    Raises:
        NotHere: there is no such file.
    """
    place, run = _inside(name)
    if not place.is_file():
        raise NotHere(f"{name} is not a file of a run")
    return place, run


def _inside(name: str) -> tuple[Path, Path]:
    """Return the path that a name resolves to, and the run that contains it."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\\" in part or not part.isprintable() for part in parts):
        raise NotHere(f"{name!r} is not the name of a run or of a file")
    root = results.root().resolve()
    try:
        place = root.joinpath(*parts).resolve(strict=True)
    except (OSError, RuntimeError) as error:  # no such file, a loop of links, a name too long
        raise NotHere(f"{name} is not in the results folder") from error
    if place.is_relative_to(root):
        run = root.joinpath(*place.relative_to(root).parts[:2])
        if run.parent.parent == root and run_index.is_run(run):
            return place, run
    raise NotHere(f"{name} is not in the results folder")


def with_runs(folders: Iterable[Path]) -> list[Path]:
    """Return these runs, and for a suite, matrix or the like the runs that it names, each once."""
    root = results.root().resolve()
    found: dict[Path, None] = {}
    for folder in folders:
        found[folder] = None
        for place in run_index.named(run_index.entry_of(folder, run_index.name_of(folder))):
            if place.parent.parent == root and run_index.is_run(place):
                found[place] = None
    return list(found)


def files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the regular files below a folder by name, in order; links are left out."""
    for place, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            path = Path(place, name)
            try:
                found = path.lstat()
            except OSError:
                continue  # a run in progress replaces files
            if stat.S_ISREG(found.st_mode):
                yield path.relative_to(folder).as_posix(), found
