"""Names from a request as places in the results folder, of which none leads out of it.

A name may come in any disguise: with `..`, as an absolute path, with encoded slashes (which are
slashes once a server has decoded them), or through a symbolic link that somebody put into the
folder. So a name is taken apart first, and where it really leads is asked of the file system after
that. Only what is in a run's folder is there: a results folder may have other files beside them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from fencepost.harness.results import results, run_index


class NotHere(LookupError):
    """There is no such file or run in the results folder."""


def run(name: str) -> Path:
    """The folder of TEST/TIME. Raises NotHere if there is none."""
    place, run = _inside(name)
    if place != run:
        raise NotHere(f"{name} is no run")
    return run


def file(name: str) -> tuple[Path, Path]:
    """A file of a run by its path, TEST/TIME/..., and the run's folder. Raises NotHere if there is
    none."""
    place, run = _inside(name)
    if not place.is_file():
        raise NotHere(f"{name} is no file of a run")
    return place, run


def _inside(name: str) -> tuple[Path, Path]:
    """Where a name leads to, and the run that this is in."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\\" in part or not part.isprintable() for part in parts):
        raise NotHere(f"{name!r} is no name of a run or a file here")
    root = results.root().resolve()
    try:
        place = root.joinpath(*parts).resolve(strict=True)
    except (OSError, RuntimeError) as error:  # nothing there, a loop of links, a name too long
        raise NotHere(f"{name} is not in the results folder") from error
    if place.is_relative_to(root):
        run = root.joinpath(*place.relative_to(root).parts[:2])
        if run.parent.parent == root and run_index.is_run(run):
            return place, run
    raise NotHere(f"{name} is not in the results folder")


def with_runs(folders: Iterable[Path]) -> list[Path]:
    """These runs, and of what stands for many the runs that it names, each once."""
    root = results.root().resolve()
    found: dict[Path, None] = {}
    for folder in folders:
        found[folder] = None
        came = run_index.stored(folder, run_index.name_of(folder)).came
        for name in came.runs if came else ():
            place = (folder / name).resolve()
            if place.parent.parent == root and run_index.is_run(place):
                found[place] = None
    return list(found)


def files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files below a folder by name, in order; what a link leads to is left out."""
    for place, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            path = Path(place, name)
            try:
                found = path.lstat()
            except OSError:
                continue  # a run that goes on replaces files
            if stat.S_ISREG(found.st_mode):
                yield path.relative_to(folder).as_posix(), found
