"""The results folder: results/<test>/<UTC time>/, and the links `latest`.

It is in the working folder, or where FENCEPOST_RESULTS says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from fencepost import runfiles
from fencepost.atomic_write import beside, replace
from fencepost.harness.errors import BadArguments, Crashed

SEGMENTS = "segments"
"""The folder in a long run's folder that has a folder for each of its segments."""
# The limit of most file systems is 255.
_MOST_BYTES = 200
# A long run has tens of thousands of faults, and indented JSON would be half white space.
_LAID_OUT = 5000


def root() -> Path:
    """Return the results folder."""
    return Path(os.environ.get("FENCEPOST_RESULTS") or "results")


def is_long(run: Path) -> bool:
    """Return whether this is the folder of a long run, which is cut into segments."""
    return (run / SEGMENTS).is_dir()


def segment(run: Path, number: int) -> Path:
    """Return the folder of a segment of a long run, from 1."""
    return run / SEGMENTS / f"{number:04d}"


def create(test: str) -> Path:
    """Make a folder for a run of this test, and point `latest` to it.

    Raises:
        BadArguments: the test's name would lead out of the results folder.
        Crashed: the folder cannot be made.
    """
    must_name_a_folder(test)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    run = root() / test / stamp
    try:
        run.mkdir(parents=True)
        link(root() / test / "latest", Path(stamp))
        link(root() / "latest", Path(test) / stamp)
    except OSError as error:
        raise Crashed(f"{run} cannot be made: {error.strerror}. Is the disk full?") from error
    return run


def must_name_a_folder(test: str) -> None:
    """Raise BadArguments if a test's name is not that of a folder in the results folder."""
    plain = test.isprintable() and "/" not in test and not test.startswith(".")
    if not plain or not 0 < len(test.encode()) <= _MOST_BYTES or test == "latest":
        raise BadArguments(
            f"a test cannot be called {test[:80]!r}: its name is a folder in the results folder, "
            f"so it needs 1 to {_MOST_BYTES} bytes, no /, no dot in front, and must not be "
            "`latest`"
        )
    place = root() / test
    if place.is_symlink() and not place.resolve().is_relative_to(root().resolve()):
        raise BadArguments(
            f"{place} is a symbolic link out of the results folder: remove it, or name another "
            "results folder (FENCEPOST_RESULTS)"
        )


def link(name: Path, target: Path) -> None:
    """Point a symbolic link to this target, replacing an older link."""
    scratch = beside(name)
    try:
        scratch.symlink_to(target)
    except OSError:
        if os.name == "nt":
            return  # Some systems do not permit symbolic links; the folder's own name is enough.
        raise
    scratch.replace(name)


def write(path: Path, content: Any) -> None:
    """Write JSON whole or not at all. Write it piece by piece: a long run's schedule has 30 MB."""
    known = content if isinstance(content, dict) else {}
    many = max(len(known.get(name) or ()) for name in ("faults", "schedule")) > _LAID_OUT
    encoder = json.JSONEncoder(separators=(",", ":")) if many else json.JSONEncoder(indent=1)
    pieces = encoder.iterencode(content)
    replace(path, chain((piece.encode() for piece in pieces), [b"\n"]))


def read_test(run: Path) -> dict[str, Any]:
    """Read the description of a run: its test.json and run.json, merged.

    Raises:
        BadArguments: one of them cannot be read or used.
    """
    return runfiles.description(run, partial(_read, as_it=runfiles.test))


def read(run: Path) -> dict[str, Any]:
    """Read a run's results.json. Raise BadArguments if it cannot be read or has another format."""
    return _read(run / runfiles.RESULTS, runfiles.results)


def of_ended(run: Path) -> dict[str, Any] | None:
    """Return the results of a run that has ended; None if it was killed or is in progress."""
    if not (run / runfiles.RESULTS).is_file():
        return None
    stored = read(run)
    return None if stored.get("live") else stored


def _read(path: Path, as_it: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    try:
        return as_it(path)
    except OSError as error:
        raise BadArguments(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadArguments(f"{path} cannot be used: {error}") from error


def server_logs(run: Path) -> dict[str, Path]:
    """Return the stored logs of servers, by the server's name."""
    return {log.parent.name: log for log in sorted(run.glob("nodes/*/server.log"))}
