"""The page of a run in progress grows with the log that the run writes."""

from __future__ import annotations

from fencepost.harness.execute.progress import Status, logged, read
from fencepost.harness.locked import locked
from fencepost.harness.results import results
from fencepost.harness.web.growing import growth
from tests.harness.web.conftest import name_of


def told(folder, *statuses):
    with logged(folder / "harness.log", lambda status: None) as tell:
        for status in statuses:
            tell(status)


def running(at_s, holds, on=(), **more):
    return Status("running", at_s, holds * 5, holds, list(on), **more)


def test_logged_lines_are_read_back(tmp_path):
    said = [
        Status("starting servers", 0.5, 0, 0, []),
        running(4.0, 10, ["redis-1 is paused", "client-1, client-2 are cut off"]),
        running(4.5, 12, judged_s=2.5),
        running(5.0, 14, broken={"lease_exclusion": "", "resource": ""}, judged_s=3.5),
        running(5.5, 14, judged_s=3.5, unjudged="it was killed"),
    ]
    told(tmp_path, *said)
    text = (tmp_path / "harness.log").read_text()
    assert read(text) == said
    assert read(text[:-20]) == said[:-1]


def test_a_run_grows_between_requests(made, browser):
    run = made("one", time_s=20)
    page = f"/run/{name_of(run)}"
    with locked(run / "history.jsonl"), locked(run):
        assert "starting" in browser.get(page).text
        told(run, Status("starting clients", 2.0, 0, 0, []), running(4.0, 10))
        first = browser.get(page).text
        assert "<strong>running</strong>" in first and ">10</dd>" in first
        assert "20.0 s left" in first and "judged at its end" in first
        faults = ["redis-1 is paused", "the clock of redis-2 jumps <far>"]
        told(run, running(6.0, 50, faults, broken={"resource": ""}, judged_s=5.0))
        second = browser.get(page).text
        assert ">50</dd>" in second and ">20</dd>" in second and "18.0 s left" in second
        assert "redis-1 is paused" in second and "jumps &lt;far&gt;" in second
        assert "broken: resource" in second and "up to 5.0 s" in second
        assert 'data-refresh="1"' in second
        assert "running" in browser.get("/?verdict=running").text
    over = browser.get(page).text
    assert "not judged" in over and "data-refresh" not in over


def test_it_shows_whether_a_run_is_judged_live(made, browser):
    short, long, until = made("one", time_s=20), made("two", time_s=40), made("x", until=["store"])
    for run, words in (short, "judged at its end"), (long, "none yet"), (until, "none yet"):
        told(run, running(4.0, 10))
        with locked(run), locked(run / "history.jsonl"):
            assert words in browser.get(f"/run/{name_of(run)}").text


def test_a_file_that_may_grow_is_sent_as_far_as_it_has_come(made, browser):
    run = made("one", time_s=20)
    told(run, running(4.0, 10))
    path = f"/files/{name_of(run)}/harness.log"
    with locked(run):
        live = browser.get(path)
    assert "content-length" not in live.headers
    assert live.text == browser.get(path).text == (run / "harness.log").read_text()


def test_a_run_whose_clients_are_done_is_being_judged(made, browser):
    run = made("one", time_s=20)
    told(run, running(4.0, 10))
    with locked(run):
        assert growth(run).judging
        assert "<strong>judging</strong>" in browser.get(f"/run/{name_of(run)}").text


def test_the_rate_is_that_of_the_last_seconds_and_bars_say_when_a_fault_was_on(made):
    run = made("one", time_s=20)
    told(run, *(running(4 + step / 2, 10 * step, ["a fault"] * (step > 8)) for step in range(12)))
    found = growth(run)
    assert (found.rate, found.most) == (20.0, 20.0)
    assert [bar.fault for bar in found.bars] == [step > 8 for step in range(1, 12)]
    assert (found.bars[0].start_s, found.bars[-1].end_s) == (4.0, 9.5)


def test_only_the_start_and_the_end_of_a_long_log_are_read(made, monkeypatch):
    monkeypatch.setattr("fencepost.harness.web.growing._HEAD", 400)
    monkeypatch.setattr("fencepost.harness.web.growing._TAIL", 2000)
    run = made("one", time_s=1000)
    told(run, *(running(4 + step / 2, step) for step in range(1000)))
    with locked(run / "history.jsonl"):
        found = growth(run)
    assert (found.now.holds, found.left_s) == (999, 1000 - 499.5)
    # The gap between them is no time in which nothing was held.
    assert len(found.bars) < 40


def test_of_a_long_run_the_segment_in_progress_is_shown(made):
    run = made("one", time_s=3600)
    for number in (1, 2):
        part = run / "segments" / f"{number:04d}"
        part.mkdir(parents=True)
        results.write(part / "test.json", results.read_test(run) | {"time_s": 600})
        told(part, running(4.0, 10 * number))
    found = growth(run)
    assert (found.now.holds, found.phase, found.left_s) == (20, "segment 2, running", 600.0)


def test_a_suite_in_progress_shows_its_results_so_far(browser, root):
    folder = results.create("suite-redis")
    row = {"test": "redis-1", "expected": {"resource": True}, "as_expected": True}
    results.write(folder / "suite.json", [row])
    with locked(folder):
        page = browser.get(f"/run/{name_of(folder)}").text
    assert "as published" in page and "running" in page and 'data-refresh="3"' in page
