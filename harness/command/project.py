"""Reads fencepost.toml: the defaults of `fencepost test` and `fencepost check` without a lock.

    lock = "mylock.py:MyLock"
    servers = "redis:1"
    faults = ["pause:client", "kill:client"]
    time = "30s"
    option = ["retries=3"]

Its keys are the long options of `fencepost test`, without the dashes. Options of the command line
take precedence over the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost import plainfile
from fencepost.harness import old_names
from fencepost.harness.errors import BadArguments, choose

NAME = "fencepost.toml"
COMMANDS = ("test", "check")
"""The commands that read it."""


def read_by(words: Sequence[str]) -> bool:
    """Return whether this command line may use defaults from the current folder's file."""
    return words[:1] != [] and words[0] in COMMANDS and Path(NAME).is_file()


def defaults(words: Sequence[str], group: Any, testing: Any) -> dict[str, Any]:
    """Return the file's value of each parameter of the command; none if the line names a lock.

    `group`: the command line; `testing`: a command line that has `test` with all its options.

    Raises:
        BadArguments: the file cannot be read, or a key or a value is invalid.
    """
    command = group.commands[words[0]]
    with command.make_context(words[0], list(words[1:]), resilient_parsing=True) as context:
        if any(context.params.get(name) for name in ("lock", "replay", "program")):
            return {}
    by_word = _by_word(command)
    known = {**_by_word(testing.commands["test"]), **by_word}
    found = {}
    for key, value in old_names.keys(words[0], _read()).items():
        word = choose(f"setting of {NAME}", key.replace("_", "-"), known)
        # Ignore the options that only the other command has.
        if word in by_word:
            found[by_word[word].name] = _value(key, value, by_word[word])
    return {words[0]: found}


def _by_word(command: Any) -> dict[str, Any]:
    """Return a command's parameters by name (`ends-with`), also by each alias (`faults`)."""
    return {
        word.removeprefix("--").replace("_", "-"): parameter
        for parameter in command.params
        for word in parameter.opts
        if word.startswith("--") or parameter.param_type_name == "argument"
    }


def _read() -> dict[str, Any]:
    try:
        return tomllib.loads(plainfile.read(Path(NAME)).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise BadArguments(f"{NAME} cannot be read: {error}") from error


def _value(key: str, value: Any, parameter: Any) -> Any:
    """Convert a value to the form of the command line: text, a list of texts, or a flag."""
    if isinstance(value, Mapping):
        raise BadArguments(f"{NAME}: {key} is a table; write it as a value (for example: a text)")
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise BadArguments(f"{NAME}: {key} must be true or false, not {value!r:.40}")
        return value
    many = [str(each) for each in (value if isinstance(value, list) else [value])]
    return many if getattr(parameter, "multiple", False) else ",".join(many)
