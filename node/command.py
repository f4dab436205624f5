"""The command of a node: `fencepost-node VERB ...`.

Each verb has its own file, whose docstring describes its arguments. A verb's result is printed,
data as JSON; a verb that answers yes or no (health, leads) uses its exit code.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module

from fencepost.node.image import Refused

Verb = Callable[[list[str]], object]

_VERBS = {
    **dict.fromkeys(
        ("run", "start", "health", "leads", "identity", "version", "wipe"),
        "fencepost.node.server",
    ),
    **{
        name: f"fencepost.node.{name}"
        for name in ("agent", "clocks", "cpu", "launch", "lazy", "names", "sshd", "threads", "vdso")
    },
    "http": "fencepost.node.httpfault",
    "log": "fencepost.node.serverlog",
    "process": "fencepost.node.processes",
}


def verb(name: str) -> Verb:
    """Return the function of a verb. KeyError if it is unknown."""
    module = import_module(_VERBS[name])
    found: Verb = getattr(module, name if module.__name__.endswith(".server") else "command")
    return found


def to_text(answer: object) -> str:
    """Print a verb's result."""
    if answer is None or isinstance(answer, bool):
        return ""
    return answer if isinstance(answer, str) else json.dumps(answer)


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in _VERBS:
        sys.exit(f"fencepost-node VERB ...; the verbs are: {', '.join(_VERBS)}")
    name, *words = sys.argv[1:]
    # Servers run as their own users, and must be able to read the files written here.
    os.umask(0o022)
    try:
        answer = verb(name)(words)
    except (Refused, OSError) as error:
        sys.exit(f"fencepost-node {name}: {error}")
    if text := to_text(answer):
        print(text)
    sys.exit(1 if answer is False else 0)
