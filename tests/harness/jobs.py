"""Items that tests send to Dask workers, without servers."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from fencepost.harness.errors import Crashed
from fencepost.harness.results import results


@dataclass(frozen=True)
class Left:
    folder: Path
    lines: int


def leaves(item, cluster, watcher):
    """Write a run with the item's lines, and another folder besides."""
    results.write(results.create(f"{item.row}-besides") / "test.json", {"besides": True})
    folder, lines = results.create(item.row), item.asked or []
    (folder / "nodes" / "client-1").mkdir(parents=True)
    (folder / "nodes" / "client-1" / "log").write_text("\n".join(lines))
    results.write(folder / "test.json", {"worker": os.getppid()})
    return Left(folder, len(lines))


def refuses(item, cluster, watcher):
    raise Crashed("no engine answers")


def breaks(item, cluster, watcher):
    raise ZeroDivisionError("a mistake of ours")


def dies(item, cluster, watcher):
    os._exit(3)


def waits(item, cluster, watcher):
    """Report its worker and its process in the folder that it was given, and write a run once it
    may continue."""
    place = Path(item.title)
    (place / f"process-{os.getpid()}").touch()
    (place / f"at-{os.getppid()}").touch()
    while place.exists() and not (place / "go").exists():
        time.sleep(0.01)
    return leaves(item, cluster, watcher)


def waiting(place):
    """Return the processes that have reported in this folder."""
    return [int(path.name.removeprefix("process-")) for path in place.glob("process-*")]
