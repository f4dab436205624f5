"""A run's report opens from disk, by itself, in both themes and on a phone."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["redis-paused-client", "redlock-clock-jump"])
def report(request, tmp_path_factory, recorded):
    return recorded(tmp_path_factory.mktemp("results"), request.param) / "report.html"


def test_a_report_asks_for_nothing_and_writes_nothing_to_the_console(report, window):
    seen = window()
    seen.open(report)
    assert seen.requests == [report.as_uri()]
    assert seen.console == []


def test_the_texts_of_a_report_can_be_read(report, window, dark):
    seen = window(dark=dark)
    seen.open(report)
    assert seen.too_faint() == []


def test_a_report_needs_no_scrolling_sideways_on_a_phone(report, window):
    seen = window(width=390)
    page = seen.open(report)
    for summary in page.locator("summary").all():
        summary.click()
    assert seen.sideways() == 0
