"""A run's report opens from disk, by itself."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory, recorded):
    return recorded(tmp_path_factory.mktemp("results"), "redis-paused-client") / "report.html"


def test_a_report_asks_for_nothing_and_writes_nothing_to_the_console(report, window):
    seen = window()
    seen.open(report)
    assert seen.requests == [report.as_uri()]
    assert seen.console == []
