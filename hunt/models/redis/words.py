"""Describes Redis' commands in a few words."""

from __future__ import annotations

import re
from typing import Any

from fencepost.hunt.models.words import shortened, text, value

_CALLS = re.compile(r"redis\.p?call\(\s*['\"](\w+)['\"]")
_KEY = 20


def asked(command: tuple[Any, ...]) -> str:
    """Describe a command: its name, its first key, and its short arguments. A script is described
    by the commands that it calls."""
    name, *rest = (text(part) for part in command)
    name = name.upper()
    if name in ("EVAL", "EVALSHA") and len(rest) > 1:
        calls = "·".join(dict.fromkeys(one.lower() for one in _CALLS.findall(rest[0])))
        keys = [shortened(one, _KEY) for one in rest[2:3] if rest[1] != "0"]
        return shortened(" ".join([name, *([calls] if calls else []), *keys]))
    shown = [shortened(rest[0], _KEY), *map(value, rest[1:])] if rest else []
    return shortened(" ".join([name, *shown]))
