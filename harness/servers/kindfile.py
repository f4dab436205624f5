"""A kind of server in a file of the user's own: one `Kind`, as in harness/servers/redis.py."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from fencepost.harness.errors import BadArguments
from fencepost.node.kind import Kind

# Under this name it is imported, here and on the node: it hides no module of anybody's.
_PREFIX = "fencepost_server_"


def load(path: Path) -> Kind:
    """The Kind that a file makes.

    Raises:
        BadArguments: there is no such file, it cannot be imported, or it makes no Kind or several.
    """
    if not path.is_file():
        raise BadArguments(f"there is no file {path} with a kind of server")
    name = _PREFIX + path.stem.replace("-", "_")
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "its name ends with .py"
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises is the user's
        raise BadArguments(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    found = [one for one in vars(module).values() if isinstance(one, Kind) and one.module == name]
    if len(found) != 1:
        raise BadArguments(
            f"{path} makes {len(found)} kinds of servers, and should make one: KIND = "
            'Kind("mydb", __name__, port=7000, health=...), see docs/your-servers.md'
        )
    return found[0]
