"""The package itself: its version, and where its own files lie (Compose files, node programs,
clients' code)."""

from importlib import metadata
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
"""In a checkout its folders are links to those at the top of the repository."""


def version() -> str:
    """Of the fencepost that runs; "not installed" in a checkout that nobody has installed."""
    try:
        return metadata.version("fencepost")
    except metadata.PackageNotFoundError:
        return "not installed"
