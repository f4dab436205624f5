"""Locates the package's own files (image, node programs, client code) and tells its version."""

from importlib import metadata
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
"""In a checkout its folders are links to those at the top of the repository."""


def version() -> str:
    """Return the version of fencepost; "not installed" in a checkout that is not installed."""
    try:
        return metadata.version("fencepost")
    except metadata.PackageNotFoundError:
        return "not installed"
