"""fencepost.toml: what `fencepost test` and `fencepost check` do where no lock is named.

    lock = "mylock.py:MyLock"
    servers = "redis:1"
    faults = ["pause:client", "kill:client"]
    time = "30s"
    option = ["retries=3"]

Its keys are the long options of `fencepost test`, without the dashes. What is given on the command
line comes before what the file says.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.harness.errors import BadArguments, choose

NAME = "fencepost.toml"
COMMANDS = ("test", "check")
"""Those that read it."""


def read_by(words: Sequence[str]) -> bool:
    """Whether this command line may take something from the file of this folder."""
    return words[:1] != [] and words[0] in COMMANDS and Path(NAME).is_file()


def defaults(words: Sequence[str], group: Any, testing: Any) -> dict[str, Any]:
    """What the file gives each parameter of the command, by name; empty where a lock is named.

    `group` is the command line, and `testing` the one that has `test` with all its options.

    Raises:
        BadArguments: the file cannot be read, or a key or a value makes no sense.
    """
    command = group.commands[words[0]]
    with command.make_context(words[0], list(words[1:]), resilient_parsing=True) as context:
        if any(context.params.get(name) for name in ("lock", "replay", "program")):
            return {}
    by_word = _by_word(command)
    known = {**_by_word(testing.commands["test"]), **by_word}
    found = {}
    for key, value in _read().items():
        word = choose(f"setting of {NAME}", key.replace("_", "-"), known)
        # What another command alone has is no concern of this one's.
        if word in by_word:
            found[by_word[word].name] = _value(key, value, by_word[word])
    return {words[0]: found}


def _by_word(command: Any) -> dict[str, Any]:
    """A command's parameters by their words: `ends-with`; `nemesis` and `faults` are one."""
    return {
        word.removeprefix("--").replace("_", "-"): parameter
        for parameter in command.params
        for word in parameter.opts
        if word.startswith("--") or parameter.param_type_name == "argument"
    }


def _read() -> dict[str, Any]:
    try:
        return tomllib.loads(Path(NAME).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadArguments(f"{NAME} cannot be read: {error}") from error


def _value(key: str, value: Any, parameter: Any) -> Any:
    """As the command line would have it: text, a list of texts, or a flag."""
    if isinstance(value, Mapping):
        raise BadArguments(f"{NAME}: {key} is a table; write it as a value, a text say")
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise BadArguments(f"{NAME}: {key} is true or false, and not {value!r:.40}")
        return value
    many = [str(each) for each in (value if isinstance(value, list) else [value])]
    return many if getattr(parameter, "multiple", False) else ",".join(many)
