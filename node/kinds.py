"""The kinds of servers that a node knows: their files were shipped to it, with a list of them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

from fencepost.node.kind import Kind

INDEX = Path(__file__).parents[2] / "kinds.json"
"""The module of each kind by its name; harness/cluster/nodecode.py writes it."""


def find(name: str) -> Kind:
    """The kind of this name. OSError if nothing of it was shipped to this node."""
    modules = json.loads(INDEX.read_text())
    if name not in modules:
        raise OSError(
            f"this node knows no server {name!r}, but {', '.join(modules)}. It was set up without: "
            "`fencepost cluster down` first"
        )
    for thing in vars(import_module(modules[name])).values():
        if isinstance(thing, Kind) and thing.name == name:
            return thing
    raise OSError(f"the module {modules[name]} has no Kind {name!r}")
