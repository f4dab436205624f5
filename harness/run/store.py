"""The store: results/<test>/<UTC time>/, and the links `latest`."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fencepost.harness.errors import BadArguments, Crashed

RESULTS = Path(os.environ.get("FENCEPOST_RESULTS", "results"))


def create(test: str) -> Path:
    """A new folder for a run of this test, and `latest` pointing to it.

    Raises:
        Crashed: the folder can not be made.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    run = RESULTS / test / stamp
    try:
        (run / "nodes").mkdir(parents=True)
        _link(RESULTS / test / "latest", Path(stamp))
        _link(RESULTS / "latest", Path(test) / stamp)
    except OSError as error:
        raise Crashed(f"{run} can not be made: {error.strerror}. Is the disk full?") from error
    return run


def _link(link: Path, target: Path) -> None:
    scratch = link.with_name(f"{link.name}.new")
    scratch.unlink(missing_ok=True)
    scratch.symlink_to(target)
    scratch.replace(link)


def write(path: Path, content: Any) -> None:
    """Write JSON in one step."""
    scratch = path.with_name(path.name + ".new")
    scratch.write_text(json.dumps(content, indent=1) + "\n")
    scratch.replace(path)


def find(name: str) -> Path:
    """The run that a person means: a folder, its history.jsonl, or TEST or TEST/TIME in the store.

    Raises:
        BadArguments: there is none, and which there are.
    """
    for path in (Path(name), RESULTS / name):
        for run in (path, path / "latest", path.parent):
            is_run = (run / "test.json").is_file() or (run / "history.jsonl").is_file()
            if is_run and (run != path.parent or path.name == "history.jsonl"):
                return run.resolve()
    there = sorted(str(p.parent.relative_to(RESULTS)) for p in RESULTS.glob("*/*Z/test.json"))
    hint = f"the newest here: {', '.join(there[-5:])}" if there else f"{RESULTS} holds no run"
    raise BadArguments(f"{name!r} is no run (a folder with test.json or history.jsonl); {hint}")


def read(path: Path) -> Any:
    """A JSON file of the store. BadArguments where it can not be read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadArguments(f"{path} can not be read: {error}") from error
