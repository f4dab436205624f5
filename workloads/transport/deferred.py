"""Imports client libraries late, because they may be missing where a lock is only described.

A lock's file has its bundle, and every command reads all bundles. Most client libraries are
installed only on the nodes, some in separate environments. So a lock names the modules that it
needs, and they are imported when it is made:

    if TYPE_CHECKING:
        import psycopg
    else:
        psycopg = Deferred("psycopg")

    class MyLock:
        def __init__(self, env, nodes, options):
            load(psycopg)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Deferred:
    """A module that is imported at the first use of one of its attributes.

    Raises ImportError then, if the module is not installed.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._module), name)
        setattr(self, name, found)
        return found


def load(*modules: object) -> None:
    """Import deferred modules now.

    A constructor calls this, because a client is made before the test's clock runs. A first acquire
    that waits half a second for an import would be overtaken by others, and the lock blamed for it.
    Raises ImportError if a module is not installed.
    """
    for module in modules:
        if isinstance(module, Deferred):
            import_module(module._module)
