"""Builds the command lines that repeat a run, a hunt or a campaign, for reports and messages."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.settings import SETTINGS


def command(verb: str, *parts: str | Iterable[str]) -> str:
    """Return `fencepost VERB` with these words, quoted for a shell. A part may be several words."""
    words = [word for part in parts for word in ([part] if isinstance(part, str) else part)]
    return shlex.join(["fencepost", *verb.split(), *words])


def option(name: str, value: Any) -> list[str]:
    """Return `--NAME VALUE`; nothing for a value that is not set, the name alone for True."""
    if value is None or value is False or value == "":
        return []
    return [f"--{name}"] if value is True else [f"--{name}", str(value)]


def lock_options(values: Mapping[str, Any]) -> list[str]:
    """Return `-o NAME=VALUE` for each option of a lock."""
    return [
        word
        for name, value in values.items()
        for word in ("-o", f"{name}={str(value).lower() if isinstance(value, bool) else value}")
    ]


def settings(test: Mapping[str, Any], *names: str) -> list[str]:
    """Return the options that set a test's settings: those of these names, or all."""
    chosen = names or tuple(SETTINGS)
    return [word for name in chosen for word in SETTINGS[name].written(test.get(name))]
