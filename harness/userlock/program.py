"""Resolves a user lock in any language: a command and the folder with the files that it needs.

The command runs in that folder, on the clients' nodes: `./worker`, or `java -jar app.jar` if the
nodes have Java. It speaks the line protocol (docs/protocol.md), usually through an SDK.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fencepost.harness.errors import BadArguments
from fencepost.harness.userlock.files import tree

_NO_NAME = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class Program:
    """A client program: the `words` of its command, and its `files` by path below its folder."""

    name: str
    words: tuple[str, ...]
    files: dict[str, Path]


def find(command: str, ship: Path | None, anywhere: bool = False) -> Program:
    """Resolve a command and its folder. `anywhere`: its file may be in the client image instead.

    Raises:
        BadArguments: the command is malformed, or its file is missing or not executable.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise BadArguments(f"--program {command!r} is not a command: {error}") from error
    if not words:
        raise BadArguments("--program is empty: write the command that runs on a client's node")
    if words[0].startswith("-"):
        raise BadArguments(f"--program {command}: it begins with an option and not with a program")
    if ship is not None and not ship.is_dir():
        raise BadArguments(f"--ship {ship}: no such folder")
    files = tree(ship) if ship is not None else {}
    if "/" not in words[0]:
        if words[0] in files:
            raise BadArguments(
                f"--program {command!r}: to run {words[0]} of {ship}, write ./{command}"
            )
    elif not words[0].startswith("/") and not anywhere:
        _must_run(words[0], ship, files)
    return Program(_name(words, files), tuple(words), files)


def _name(words: list[str], files: dict[str, Path]) -> str:
    """Return the name of its runs: that of its file, or of the file that its interpreter runs."""
    own = [word for word in words if str(PurePosixPath(word)) in files]
    arguments = [word for word in words if not word.startswith("-")]
    word = (own or (words if "/" in words[0] else arguments[::-1] or words))[0]
    return _NO_NAME.sub("-", PurePosixPath(word).stem) or "program"


def _must_run(word: str, ship: Path | None, files: dict[str, Path]) -> None:
    """Raise BadArguments if the folder has no executable file of this relative path."""
    if ship is None:
        raise BadArguments(
            f"--program {word}: a relative path needs --ship DIR: the folder that is sent to the "
            "clients' nodes and in which the command runs"
        )
    name = str(PurePosixPath(word))
    if name not in files:
        there = sorted(file for file in files if "/" not in file)[:8]
        raise BadArguments(
            f"--program {word}: {ship} has no file {name}; it has {', '.join(there) or 'none'}"
        )
    if not os.access(files[name], os.X_OK):
        raise BadArguments(f"--program {word}: {files[name]} is not executable: chmod +x it")
