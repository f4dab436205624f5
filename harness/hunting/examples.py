"""The clients of sdk/examples, which hunts know by name: other libraries, in other languages."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fencepost.harness.errors import BadArguments
from fencepost.harness.package import PACKAGE

_LONGEST_S = 300.0
_LAST_WORDS = 500


@dataclass(frozen=True)
class Example:
    """A client: its folder, and the command of its program in the folder of the built program, or
    in its own. `packages`: those to install, which have the word `needs`."""

    folder: str
    program: str
    servers: str
    needs: str
    packages: str
    ends_with: str = "lease"

    @property
    def sources(self) -> Path:
        return PACKAGE / "sdk" / "examples" / self.folder


def _npm(program: str, servers: str, library: str) -> Example:
    return Example("npm", f"node {program}", servers, "node", f"npm's {library} and ioredis")


EXAMPLES = {
    "etcd-mutex": Example(
        "etcd-mutex", "./worker", "etcd:3", "go", "Debian's golang-go and golang-etcd-server-dev",
        ends_with="close",
    ),
    "redigo": Example(
        "redigo", "./worker", "redis:1", "go",
        "Debian's golang-go and golang-github-gomodule-redigo-dev",
    ),
    "hiredis": Example(
        "hiredis", "./worker", "redis:1", "gcc", "Debian's gcc and libhiredis-dev"
    ),
    "redlock-5": _npm("redlock.js redlock", "redis:3", "redlock@5.0.0-beta.2"),
    "redlock-sesamecare": _npm(
        "redlock.js @sesamecare-oss/redlock", "redis:3", "@sesamecare-oss/redlock"
    ),
    "redis-semaphore": _npm("semaphore.js", "redis:1", "redis-semaphore"),
    "ioredis": _npm("ioredis.js", "redis:1", "ioredis"),
}  # fmt: skip
"""By name. Each differs from a lock of the registry: it is not on the nodes' image."""


def built(name: str) -> tuple[Example, Path]:
    """Return an example, and the folder in which its program runs.

    Raises:
        BadArguments: this machine lacks what it needs, or it does not compile.
    """
    made = EXAMPLES[name]
    if not shutil.which(made.needs):
        raise BadArguments(
            f"{name} cannot be hunted here: {made.needs} is not on this machine. Install "
            f"{made.packages}"
        )
    if not (made.sources / "build.sh").is_file():
        return made, made.sources
    return made, Path(_compiled(name).name)


@lru_cache(maxsize=8)
def _compiled(name: str) -> tempfile.TemporaryDirectory[str]:
    """Build a program, once; the folder is removed when this process ends."""
    made = tempfile.TemporaryDirectory(prefix=f"fencepost-{name}-")
    build = EXAMPLES[name].sources / "build.sh"
    ended = subprocess.run(
        ["sh", str(build), made.name],
        capture_output=True, text=True, check=False, timeout=_LONGEST_S,
    )  # fmt: skip
    if ended.returncode:
        raise BadArguments(
            f"{name} does not build here. It needs {EXAMPLES[name].packages}: "
            f"{ended.stderr[-_LAST_WORDS:].strip()}"
        )
    return made
