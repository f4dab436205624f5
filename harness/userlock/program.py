"""A lock of one's own in any language: a command, and the folder of what it needs.

The command is carried out in that folder, on the clients' nodes: `./worker`, or `java -jar app.jar`
of what the nodes have. It speaks the line protocol (docs/protocol.md), as a rule by an SDK.
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
    """`words` of the command; `files` by their path below the folder in which it is run."""

    name: str
    words: tuple[str, ...]
    files: dict[str, Path]


def find(command: str, ship: Path | None, anywhere: bool = False) -> Program:
    """What a command and its folder mean. `anywhere`: it may be in an image that is not ours.

    Raises:
        BadArguments: it is no command, or its own file is not in the folder, or cannot be run.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise BadArguments(f"--program {command!r} is no command: {error}") from error
    if not words:
        raise BadArguments("--program is empty: write the command that runs on a client's node")
    if ship is not None and not ship.is_dir():
        raise BadArguments(f"--ship {ship}: there is no such folder")
    files = tree(ship) if ship is not None else {}
    if "/" not in words[0]:
        if words[0] in files:
            raise BadArguments(f"--program {command!r}: {ship} has {words[0]}: write ./{command}")
    elif not words[0].startswith("/") and not anywhere:
        _must_run(words[0], ship, files)
    return Program(_name(words, files), tuple(words), files)


def _name(words: list[str], files: dict[str, Path]) -> str:
    """What a run of it is called: its own file, or what an interpreter is told to run."""
    own = [word for word in words if str(PurePosixPath(word)) in files]
    told = [word for word in words if not word.startswith("-")]
    word = (own or (words if "/" in words[0] else told[::-1]))[0]
    return _NO_NAME.sub("-", PurePosixPath(word).stem) or "program"


def _must_run(word: str, ship: Path | None, files: dict[str, Path]) -> None:
    """Raise BadArguments if a file that is named with a relative path cannot be run there."""
    if ship is None:
        raise BadArguments(
            f"--program {word}: which folder has it? --ship DIR sends one to the clients' nodes, "
            "and the command is run there"
        )
    name = str(PurePosixPath(word))
    if name not in files:
        there = sorted(file for file in files if "/" not in file)[:8]
        raise BadArguments(
            f"--program {word}: {ship} has no file {name}; it has {', '.join(there) or 'none'}"
        )
    if not os.access(files[name], os.X_OK):
        raise BadArguments(f"--program {word}: {files[name]} cannot be executed: chmod +x it")
