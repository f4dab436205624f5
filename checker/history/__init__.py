"""The history: ops, their decoding, and the reads and writes of each resource."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return what version 0.1.0 had here, when fencepost.checker.history was one module."""
    # Not `from ... import history`: while that module is loaded, Python asks for it here.
    if name in ("History", "HistoryError", "Op", "Call", "read", "write", "pair"):
        module = import_module(f"{__name__}.history")
        import_module("fencepost.moved").warn(f"{__name__}.{name}", f"{module.__name__}.{name}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
