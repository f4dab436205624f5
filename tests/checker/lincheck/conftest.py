"""Provide the recorded histories of other checkers, where they are installed."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def recorded() -> Path:
    """Return the recorded histories with known verdicts, which are not part of the project."""
    checkout = Path(__file__).parents[3]
    folder = Path(os.environ.get("FENCEPOST_HISTORIES", checkout.parent / "shared" / "histories"))
    if not (folder / "verdicts.csv").is_file():
        pytest.skip(f"no recorded histories in {folder}; set FENCEPOST_HISTORIES")
    return folder
