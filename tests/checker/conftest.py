"""Provide a new story to each test."""

import pytest

from tests.histories import Story


@pytest.fixture
def story() -> Story:
    return Story()
