"""A static site, opened from a disk, requests only files and is readable in both themes."""

from __future__ import annotations

import pytest

from fencepost.harness.campaigns import nightly
from fencepost.harness.campaigns.outcomes import Entry
from fencepost.harness.publish import publish
from fencepost.harness.results import results
from tests.browser.conftest import DESK, PHONE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FENCEPOST_RESULTS", str(place / "results"))
        for seed in (1, 2):
            folder, night = nightly.begin(seed, 600.0)
            marks = ["kept"] if seed == 1 else ["broken"]
            rates = {"service": {"count": seed - 1, "of": 500}}
            night.entries = [
                Entry("matrix/redis/none/none", "redis", marks=marks, rates=rates,
                      acquire_ms={"p50": float(seed)}, holds=500),
                Entry("suite/a", sure=True, marks=["NOT as published"], expected="resource broken"),
            ]  # fmt: skip
            nightly._write(folder, night, {})
        docs = place / "docs"
        docs.mkdir()
        (docs / "findings.md").write_text(
            "# Found\n\n| a | b |\n| --- | --- |\n| `" + "x" * 300 + "` | 2 |\n"
        )
        publish.build(place / "public", docs, 10_000_000, lambda words: None)
        assert results.root().is_dir()
    return place / "public"


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_every_page_reads_and_asks_for_nothing_but_its_own_files(site, window, width, dark):
    shown = window(width, dark)
    for page in sorted(site.rglob("*.html")):
        shown.open(page)
        assert shown.too_faint() == []
        assert shown.sideways() == 0
    assert shown.console == []
    assert all(address.startswith(site.as_uri()) for address in shown.requests)


def test_from_the_index_to_a_changed_outcome(site, window):
    shown = window(DESK)
    page = shown.open(site / "index.html")
    page.click("text=Trend over nightly runs")
    assert page.locator("svg polyline").count() > 0
    page.locator("table a").first.click()
    assert "suite/a" in page.locator(".beside").first.locator("xpath=preceding::h3[1]").inner_text()


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_the_register_is_sorted_and_filtered(site, window, width):
    page = window(width).open(site / "register" / "index.html")
    visible = page.locator("#register tbody tr:visible")
    every = visible.count()
    page.select_option("[data-column=impact]", "slow")
    assert 0 < visible.count() < every
    assert page.locator("[role=status]").inner_text() == f"{visible.count()} of {every} shown"
    page.select_option("[data-column=impact]", "")
    page.select_option("[data-column=software]", "redis-py")
    assert visible.count() > 1  # of its Lock and of its asyncio Lock
    assert all("redis-py" in one for one in visible.all_inner_texts())
    page.select_option("[data-column=software]", "")
    for order, key in (("ascending", False), ("descending", True)):
        page.click("th button:text-is('software')")
        names = [
            name.lower()
            for name in page.locator("#register tbody td:nth-child(2)").all_inner_texts()
        ]
        assert names == sorted(names, reverse=key), order
    visible.first.locator("a").click()
    assert page.locator("summary").count() == 3  # the picture in words, the script, the issue


def test_a_badge_of_a_long_name_fits_a_phone(site, window):
    page = window(PHONE).open(site / "register" / "etcd-go-resign-forgets.html")
    badges = page.locator(".badge svg")
    assert badges.count() > 0
    for badge in badges.all():
        box = badge.bounding_box()
        assert box["x"] + box["width"] <= PHONE, box
