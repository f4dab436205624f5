"""A client library that may be missing where a lock is only described.

A lock's file has its bundle, and every command reads all bundles. Most client libraries are
installed on the nodes alone, some in an environment of their own. So a lock names the modules it
needs and they are imported when the first attribute is read:

    if TYPE_CHECKING:
        import psycopg
    else:
        psycopg = Deferred("psycopg")
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
