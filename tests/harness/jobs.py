"""Tasks that tests send to Dask workers, without servers."""

from __future__ import annotations

import os
import time
from pathlib import Path

from fencepost.harness.errors import Crashed
from fencepost.harness.results import results


def leaves(test, lines):
    """Write a run with these lines, and another folder besides."""
    results.write(results.create(f"{test}-besides") / "test.json", {"besides": True})
    folder = results.create(test)
    (folder / "nodes" / "client-1").mkdir(parents=True)
    (folder / "nodes" / "client-1" / "log").write_text("\n".join(lines))
    results.write(folder / "test.json", {"worker": os.getppid()})
    return folder, len(lines)


def refuses(words):
    raise Crashed(words)


def breaks():
    raise ZeroDivisionError("a mistake of ours")


def dies(code):
    os._exit(code)


def waits(place):
    """Report its worker, and write a run once it may continue."""
    (Path(place) / f"at-{os.getppid()}").touch()
    while not (Path(place) / "go").exists():
        time.sleep(0.01)
    return leaves("waited", [])
