"""The kinds of servers that a node knows: their files were shipped to it, with an index."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

from fencepost.node.kind import Kind

INDEX = Path(__file__).parents[2] / "kinds.json"
"""The module of each kind by its name; harness/cluster/nodecode.py writes it."""


def find(name: str) -> Kind:
    """Return the kind of this name. OSError if its file was not shipped to this node."""
    modules = json.loads(INDEX.read_text())
    if name not in modules:
        raise OSError(
            f"this node has no server {name!r}, only {', '.join(modules)}. Run `fencepost cluster "
            "down` first, so that the node is set up again"
        )
    for thing in vars(import_module(modules[name])).values():
        if isinstance(thing, Kind) and thing.name == name:
            return thing
    raise OSError(f"the module {modules[name]} has no Kind {name!r}")
