"""Finds a folder of results by the name that a person gives: a run, a matrix, a nightly run.

A name is a path: of the folder, of its history, or of a folder of such folders. Or it is TEST,
TEST/TIME, TIME or `latest`, in the results folder. If several folders have the name, the newest of
the requested kind is meant; `latest` is the newest of its kind.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from fencepost import plainfile
from fencepost.harness.errors import BadArguments
from fencepost.harness.results.results import root

RUN, ANY = "run", ""
_RUN_FILES = ("test.json", "history.jsonl")
# The number of folders that an error names.
_NEWEST = 5


def find(name: str, kind: str = RUN) -> Path:
    """Return the folder of this name. `kind`: "run", one of batch_index.KINDS, or "" for any.

    Raises:
        BadArguments: there is none; the text names the newest ones.
    """
    for place in _places(name):
        for folder in _below(place):
            if is_one(folder, kind):
                return folder.resolve()
    noun = {ANY: "run", "night": "nightly run"}.get(kind, kind)
    there = newest(_NEWEST, kind)
    hint = f"the newest here: {', '.join(there)}" if there else f"{root()} holds no {noun}"
    raise BadArguments(
        f"{name!r} is not a {noun} (the path of a folder, or TEST, TEST/TIME, TIME or latest in "
        f"{root()}); {hint}"
    )


def newest(most: int, kind: str = RUN) -> list[str]:
    """Return the newest folders of a kind, as TEST/TIME, newest first."""
    found = (folder for folder in _newest_first(root().glob("*/*Z")) if is_one(folder, kind))
    return [str(one.relative_to(root())) for one, _ in zip(found, range(most), strict=False)]


def is_one(folder: Path, kind: str) -> bool:
    """Return whether this folder is one of this kind."""
    if kind in (RUN, ANY) and any(plainfile.exists(folder / name) for name in _RUN_FILES):
        return True
    if kind == RUN or not folder.is_dir():
        return False
    # Imported here: it reads the pages of campaigns, which a run does without.
    from fencepost.harness.results import batch_index

    found = batch_index.kind(folder)
    return found == kind if kind else found != ""


def _places(name: str) -> Iterator[Path]:
    """Yield the folders that a name may mean, the likeliest first."""
    path = Path(name)
    yield path.parent if path.is_file() else path
    yield root() / name
    if path.name == name and root().is_dir():
        yield from _newest_first(test / name for test in root().iterdir())


def _below(place: Path) -> Iterator[Path]:
    """Return a folder, and those in it whose names are the time of their start."""
    if place.name == "latest" and not place.exists():  # some systems do not permit symbolic links
        place = place.parent
    yield place
    yield place / "latest"
    yield from _newest_first((*place.glob("*Z"), *place.glob("*/*Z")))


def _newest_first(folders: Iterable[Path]) -> list[Path]:
    return sorted(
        folders, key=lambda folder: os.path.basename(os.path.realpath(folder)), reverse=True
    )
