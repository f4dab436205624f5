"""Loads a kind of server from a user's file: one `Kind`, as in harness/servers/redis.py."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.kinds import check
from fencepost.node.kind import Kind

# The module name of the file, here and on the node. It must not hide another module.
_PREFIX = "fencepost_server_"


def load(path: Path) -> Kind:
    """Return the Kind that a file defines.

    Raises:
        BadArguments: there is no such file, it cannot be imported, or it does not define exactly
            one Kind.
    """
    if not path.is_file():
        raise BadArguments(f"the file {path} of a kind of server does not exist")
    name = _PREFIX + path.stem.replace("-", "_")
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "its name ends with .py"
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's file may raise anything
        raise BadArguments(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    found = [one for one in vars(module).values() if isinstance(one, Kind) and one.module == name]
    if len(found) != 1:
        raise BadArguments(
            f"{path} defines {len(found)} kinds of servers, but must define one: KIND = "
            'Kind("mydb", __name__, port=7000, health=...), see docs/your-servers.md'
        )
    try:
        check(found[0])
    except ValueError as error:
        raise BadArguments(f"{path}: {error}") from error
    return found[0]
