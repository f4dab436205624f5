"""A person uses `fencepost serve` in both themes, on a desk and on a phone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from fencepost.harness.execute.progress import Status, logged
from fencepost.harness.locked import locked
from fencepost.harness.results import results

pytestmark = pytest.mark.slow

RUNS = ("redis-paused-client", "redis-paused-client-fenced", "redlock-clock-jump",
        "redlock-paused-and-killed-servers", "etcd-partitioned")  # fmt: skip
PHONE = 390


@pytest.fixture(scope="module")
def root(tmp_path_factory, recorded):
    place = tmp_path_factory.mktemp("results")
    for name in RUNS:
        recorded(place, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FENCEPOST_RESULTS", str(place))
        suite = results.create("suite-redis")
        results.write(suite / "suite.json", [{"test": "one", "expected": {"resource": True}}])
    return place


@pytest.fixture(scope="module")
def address(root):
    command = [sys.executable, "-m", "fencepost", "serve", "--port", "0", "--results", root]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "src"}
    ) as server:
        assert server.stdout is not None
        found = re.search(r"http://[\d.:]+", server.stdout.readline())
        assert found is not None
        yield found[0]
        server.terminate()


@pytest.fixture
def live(root, monkeypatch):
    """A run in progress, without servers: the test writes its files."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(root))
    run = results.create("live")
    (run / "history.jsonl").write_text("")
    about = {
        "name": "live",
        "lock": {"name": "redlock", "options": {}},
        "nemesis": [],
        "time_s": 20,
    }
    results.write(run / "test.json", about)
    yield run
    shutil.rmtree(run.parent, ignore_errors=True)


def named(root, test):
    (run,) = [path for path in root.glob(f"{test}*/*Z") if not path.is_symlink()][:1]
    return f"{run.parent.name}/{run.name}"


def places(root):
    """Return every kind of page."""
    one, other = named(root, "redis-pause"), named(root, "etcd")
    return [
        "/",
        "/?verdict=invalid&sort=-holds",
        "/?text=no-such-run",
        f"/run/{one}",
        f"/run/{named(root, 'suite')}",
        f"/compare?run={one}&run={other}",
        f"/remove?run={one}&run={other}",
    ]


def names(page):
    return page.locator("td.name a:first-child").all_inner_texts()


@pytest.mark.parametrize("width", [1280, PHONE])
def test_each_page_can_be_read_is_silent_and_asks_no_other_host(root, address, window, dark, width):
    seen = window(width=width, dark=dark)
    for place in places(root):
        seen.open(f"{address}{place}")
        assert (place, seen.too_faint(), seen.sideways()) == (place, [], 0)
    assert seen.console == []
    assert {url.split("/")[2] for url in seen.requests} == {address.removeprefix("http://")}


def test_runs_are_filtered_and_sorted_by_clicks(root, address, window):
    page = window().open(address)
    assert len(names(page)) == len(RUNS) + 1
    page.select_option("[name=verdict]", "invalid")
    page.wait_for_url("**verdict=invalid**")
    said = page.locator("td.what").all_inner_texts()
    assert sorted(one.split()[0] for one in said) == ["0", "INVALID", "INVALID", "INVALID"]
    page.click("text=all runs")
    page.fill("[name=text]", "redlock")
    page.click("text=Show")
    assert names(page) and all("redlock" in name for name in names(page))
    page.click("text=all runs")
    page.click("th >> text=holds")
    page.wait_for_url("**sort=-holds**")
    cells = page.locator("td[data-label=holds]").all_inner_texts()
    holds = [int(text.replace(",", "")) for text in cells if text]
    assert holds == sorted(holds, reverse=True) and len(holds) == len(RUNS)


def test_a_report_opens_from_its_run_and_works(root, address, window):
    seen = window()
    page = seen.open(f"{address}/run/{named(root, 'redis-pause')}")
    page.click("text=Open the report")
    page.wait_for_url("**/report.html")
    assert page.locator("canvas").first.bounding_box()["height"] > 20
    page.locator("ol.evidence a").first.click()
    assert seen.console == []
    # The content of a run's files is untrusted: it may send no request to the server.
    assert page.evaluate("self.origin") == "null"


def test_two_runs_are_chosen_and_compared(root, address, window):
    page = window().open(address)
    compare = page.locator("button", has_text="Compare")
    assert compare.is_disabled()
    for box in page.locator("td.choose input").all()[-2:]:
        box.check()
    assert page.locator("[data-count]").inner_text() == "2 selected"
    compare.click()
    assert page.locator("h1").inner_text().startswith("The results are")
    assert page.locator("tr.differs").count() > 0


def test_chosen_runs_are_downloaded_as_a_zip_file(root, address, window, tmp_path):
    page = window().open(address)
    page.locator("td.choose input").last.check()
    with page.expect_download() as download:
        page.click("text=Zip")
    download.value.save_as(tmp_path / "runs.zip")
    names = zipfile.ZipFile(tmp_path / "runs.zip").namelist()
    assert [name for name in names if name.endswith("/history.jsonl")]


def test_a_run_is_deleted_by_two_clicks_and_kept_by_another(root, address, window, live):
    seen = window()
    page = seen.open(f"{address}/?text=live")
    page.locator("td.choose input").check()
    page.click("text=Delete…")
    page.click("text=Keep")
    assert live.exists()
    page.goto(f"{address}/run/live/{live.name}")
    page.click("text=Delete…")
    page.click("button >> text=Delete")
    page.wait_for_url(f"{address}/")
    assert not live.exists()
    assert seen.console == []


def test_a_run_in_progress_is_watched_from_its_start_to_its_end(root, address, window, live):
    seen = window()
    page = seen.open(f"{address}/?verdict=running")
    assert names(page) == []
    with logged(live / "harness.log", lambda status: None) as tell:
        with locked(live / "history.jsonl"), locked(live):
            # The page refreshes by itself.
            page.locator("td.what >> text=running").wait_for()
            page.click("td.name a")
            tell(Status("starting servers", 0.5, 0, 0, []))
            page.locator(".phase >> text=starting servers").wait_for()
            for step in range(8):
                on = ["redis-3 is paused"] if step > 4 else []
                broken = {"lease_exclusion": ""} if step > 6 else {}
                said = Status("running", 4 + step / 2, step * 50, step * 10, on, broken, step / 2)
                tell(said)
            page.locator("dd >> text=70").wait_for()
            page.locator("td >> text=redis-3 is paused").wait_for()
            page.locator("td >> text=broken: lease_exclusion").wait_for()
            assert page.locator("svg rect.rate").count() >= 7
            assert page.locator("svg rect.fault").count() == 3
            assert (seen.too_faint(), seen.sideways()) == ([], 0)
        page.locator("h1 >> text=not judged").wait_for()
    assert page.locator(".growing").count() == 0
    assert seen.console == []


def test_a_refresh_keeps_the_choices_of_a_form(root, address, window, live):
    page = window().open(address)
    page.locator("td.choose input").last.check()
    before = names(page)
    later = results.create("later")
    results.write(later / "test.json", results.read_test(live) | {"name": "later"})
    page.evaluate("refresh()")
    assert names(page) == before
    page.locator("td.choose input").last.uncheck()
    page.evaluate("document.activeElement.blur(); refresh()")
    assert names(page) == ["later", *before]
    shutil.rmtree(later.parent)
