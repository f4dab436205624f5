"""A story for each test to tell."""

import pytest

from tests.histories import Story


@pytest.fixture
def story() -> Story:
    return Story()
