"""Makes the stories in this folder importable by its tests, and gives each test one to tell."""

import sys
from pathlib import Path

import pytest

from histories import Story

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def story() -> Story:
    return Story()
