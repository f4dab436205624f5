"""A run's report opens from disk without a server, and shows the events of the run."""

from __future__ import annotations

import json

import pytest

from fencepost.report.pages.matrix import render as matrix_page
from fencepost.report.pages.run import render
from fencepost.report.pages.suite import render as suite_page
from tests.report.matrices import stored as matrix_of
from tests.report.pages.test_matrix import ELECTORS

pytestmark = pytest.mark.slow

PHONE = 390
RUNS = ("redis-paused-client", "redlock-clock-jump", "etcd-partitioned")
STAMP = "39:M 23 Nov 2026 23:52:{:06.3f} * {}"
BEGAN = 1_795_477_932.0  # 2026-11-23T23:52:12Z, the origin of STAMP's times


@pytest.fixture(scope="module")
def reports(tmp_path_factory, recorded):
    root = tmp_path_factory.mktemp("results")
    return {name: recorded(root, name) / "report.html" for name in RUNS}


@pytest.fixture
def report(reports):
    return reports["redlock-clock-jump"]


@pytest.fixture(scope="module")
def logged(tmp_path_factory, recorded):
    """Return the report of a run with a start time, of which a server logged something."""
    run = recorded(tmp_path_factory.mktemp("logged"), "redlock-clock-jump")
    log = run / "nodes" / "redis-3" / "server.log"
    log.parent.mkdir(parents=True)
    log.write_text(STAMP.format(15.1, "<script>alert(1)</script> " + "x" * 300) + "\n")
    test = json.loads((run / "test.json").read_text())
    (run / "test.json").write_text(json.dumps(test | {"began_unix_s": BEGAN}))
    return render(run)


def span(page):
    """Return the span that the timeline shows, in seconds."""
    return [float(word) for word in label(page).split() if word[0].isdigit()]


def label(page):
    return page.locator(".timeline .span").inner_text()


def moved(page, before):
    """Wait until the timeline shows another span."""
    until(page, f"document.querySelector('.timeline .span').textContent !== {json.dumps(before)}")


def until(page, expression):
    """Wait for an expression to be true.

    playwright's own waiting evaluates text, which the page's policy forbids.
    """
    for _ in range(100):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def shows(page, chart, colour):
    """Return whether a chart has a pixel of one of the page's colours."""
    return page.evaluate(
        """([chart, colour]) => {
          const canvas = document.querySelector(`[data-chart=${chart}]`);
          const style = getComputedStyle(document.documentElement);
          const text = style.getPropertyValue("--" + colour).trim();
          const wanted = [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16)).join();
          const ink = canvas.getContext("2d");
          const {data} = ink.getImageData(0, 0, canvas.width, canvas.height);
          for (let i = 0; i < data.length; i += 4)
            if (data.slice(i, i + 3).join() === wanted) return true;
          return false;
        }""",
        [chart, colour],
    )


def found(page):
    return page.locator("ol.found li").all_inner_texts()


@pytest.fixture(scope="module")
def suite(reports, tmp_path_factory):
    """Return a suite's page with an outcome as published, another outcome, and an unknown one."""
    folder = tmp_path_factory.mktemp("suite")
    run = reports["redlock-clock-jump"].parent
    (folder / "run").symlink_to(run)
    held, broken = {"lease_exclusion": True, "resource": True}, {"lease_exclusion": False}
    entries = [
        {"scenario": "jump", "guard": "none", "expected": held, "observed": broken, "run": "run"},
        {"scenario": "jump", "guard": "fenced", "expected": broken, "observed": broken,
         "as_expected": True, "run": "run"},
        {"scenario": "control", "guard": "none", "expected": held,
         "observed": {"lease_exclusion": "unknown"}},
    ]  # fmt: skip
    (folder / "suite.json").write_text(json.dumps(entries))
    return suite_page(folder)


@pytest.mark.parametrize("name", RUNS)
def test_a_report_asks_for_nothing_and_writes_nothing_to_the_console(reports, name, window):
    seen = window()
    seen.open(reports[name])
    assert seen.requests == [reports[name].as_uri()]
    assert seen.console == []


@pytest.mark.parametrize("width", [1280, PHONE])
@pytest.mark.parametrize("name", RUNS)
def test_a_report_can_be_read_in_both_themes_and_on_a_phone(reports, name, window, dark, width):
    seen = window(width=width, dark=dark)
    page = seen.open(reports[name])
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.fill("#search", "client")
    assert (seen.too_faint(), seen.sideways()) == ([], 0)


def test_from_the_finding_s_sentence_to_the_place_on_the_timeline_is_one_click(report, window):
    page = window().open(report)
    whole, before = span(page), label(page)
    link = page.locator("ol.evidence li", has_text="was granted hold").locator("a").first
    at = json.loads(link.get_attribute("data-moment"))
    link.click()
    moved(page, before)
    first, last = span(page)
    assert first <= at["from"] / 1e6 <= at["until"] / 1e6 <= last
    assert last - first < whole[1] - whole[0]
    top = "document.querySelector('#timeline').getBoundingClientRect().top"
    until(page, f"Math.abs({top}) < 200")


def test_why_two_believed_is_one_picture_with_a_way_to_the_timeline(report, window):
    page = window().open(report)
    picture = page.locator("figure.look")
    rows = picture.locator(".who b").all_inner_texts()
    assert [row.split()[0] for row in rows[:2]] == ["client-1", "client-2"]
    assert "jumps 30 s ahead" in picture.inner_text()
    before = label(page)
    picture.locator("a").click()
    moved(page, before)


def test_search_finds_by_all_words_and_its_kinds_are_filtered(report, window):
    seen = window()
    page = seen.open(report)
    assert found(page) == []
    page.fill("#search", "client-1")
    both = found(page)
    assert both and all("client-1" in one for one in both)
    page.fill("#search", "CLIENT-1 granted")
    assert 0 < len(found(page)) < len(both)
    page.fill("#search", "jumps")
    assert any("clock: " in one for one in found(page))
    for kind in ("findings", "holds", "writes", "acquires"):
        page.uncheck(f".search input[value={kind}]")
    assert [one.split("\n")[-1] for one in found(page)] and len(found(page)) == 1
    before = label(page)
    page.locator("ol.found a").click()
    moved(page, before)
    page.fill("#search", "no such thing")
    assert (found(page), page.locator("[role=status]").inner_text()) == (
        [],
        "No match on this page.",
    )
    assert seen.console == []


def test_log_lines_of_servers_around_a_violation_are_shown_escaped(logged, window):
    seen = window(width=PHONE)
    page = seen.open(logged)
    (line,) = page.locator("ol.log li").all_inner_texts()
    assert "3.100 s" in line and "redis-3" in line and "<script>alert(1)</script>" in line
    assert "their lines may be shifted" in page.content()
    assert (seen.sideways(), seen.console) == (0, [])


def test_clocks_and_rates_are_drawn(report, window):
    page = window().open(report)
    assert shows(page, "rates", "c1")
    assert shows(page, "clocks", "c0")
    assert not shows(page, "clocks", "c1")


def test_a_print_is_light_and_has_no_controls(report, window):
    seen = window(dark=True)
    page = seen.open(report)
    page.emulate_media(media="print", color_scheme="light")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".timeline .tools").is_hidden()
    assert page.locator("section.search").is_hidden()
    assert seen.too_faint() == []
    ink = page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()"
    )
    assert ink == "#1d1f21"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.evaluate("document.documentElement.classList.contains('paper')")


@pytest.mark.parametrize("width", [1280, PHONE])
def test_a_suite_s_grid_can_be_read_in_both_themes_and_on_a_phone(suite, window, dark, width):
    seen = window(width=width, dark=dark)
    seen.open(suite)
    assert (seen.too_faint(), seen.sideways(), seen.console) == ([], 0, [])


def test_a_suite_s_grid_has_words_for_its_colours_and_links_to_runs(suite, window):
    page = window().open(suite)
    signs = page.locator("table.glance .spot")
    said = [one.get_attribute("aria-label") for one in signs.all()]
    assert said[:2] == [
        "guard none, lease_exclusion: broken, predicted: holds",
        "guard fenced, lease_exclusion: broken, as predicted",
    ]
    assert [text.strip() for text in signs.all_inner_texts()] == ["✗", "✗", "–", "?", "–"]
    signs.nth(1).click()
    assert page.url.endswith("/run/report.html")
    assert page.locator("figure.look").count() == 1


@pytest.mark.parametrize("width", [1280, PHONE])
def test_a_matrix_of_electors_can_be_read_in_both_themes_and_on_a_phone(
    tmp_path, window, dark, width
):
    (tmp_path / "matrix.json").write_text(json.dumps(matrix_of(*ELECTORS)))
    seen = window(width=width, dark=dark)
    page = seen.open(matrix_page(tmp_path))
    page.locator("table.leaders a", has_text="partition").first.click()
    assert page.locator("section.cell:target").is_visible()
    assert (seen.too_faint(), seen.sideways(), seen.console) == ([], 0, [])
