"""Compiles the client of a Java library on this machine, as the build of the nodes' image does."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from fencepost.harness.errors import BadArguments
from fencepost.harness.package import PACKAGE

_CLASS_PATH = "-cp"
_LONGEST_S = 120.0
_LAST_WORDS = 500


def command(lock: str, library: str, words: tuple[str, ...], on_nodes: str) -> tuple[str, ...]:
    """Return the command of a lock's program. `words`: its command on nodes, where the folder
    `on_nodes` has its classes.

    Raises:
        BadArguments: this machine lacks Java's compiler, or a jar; or it does not compile.
    """
    place = words.index(_CLASS_PATH) + 1
    jars = [path for path in words[place].split(":") if path != on_nodes]
    lacks = [word for word in ("java", "javac") if not shutil.which(word)]
    lacks += [path for path in jars if not Path(path).is_file()]
    if lacks:
        raise BadArguments(
            f"{lock} cannot be hunted here: {lacks[0]} is not on this machine. Install Debian's "
            f"default-jdk-headless and lib{library}-recipes-java; `fencepost test {lock}` runs on "
            "nodes that have both"
        )
    classes = _compiled(library, ":".join(jars))
    return (*words[:place], ":".join([classes.name, *jars]), *words[place + 1 :])


@lru_cache(maxsize=8)
def _compiled(library: str, class_path: str) -> tempfile.TemporaryDirectory[str]:
    """Compile the clients of a library, once; the folder is removed when this process ends."""
    made = tempfile.TemporaryDirectory(prefix=f"fencepost-{library}-")
    sources = [
        *sorted((PACKAGE / "sdk" / "clients" / library).glob("*.java")),
        PACKAGE / "sdk" / "java" / "Fencepost.java",
    ]
    ended = subprocess.run(
        ["javac", "-encoding", "UTF-8", "-d", made.name, "-cp", class_path, *map(str, sources)],
        capture_output=True, text=True, check=False, timeout=_LONGEST_S,
    )  # fmt: skip
    if ended.returncode:
        raise BadArguments(
            f"the client of {library} does not compile here: {ended.stderr[-_LAST_WORDS:]}"
        )
    return made
