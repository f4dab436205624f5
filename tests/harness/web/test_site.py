"""The results folder in a browser: listed, filtered, sorted, compared, zipped, deleted."""

from __future__ import annotations

import asyncio
import io
import os
import re
import threading
import time
import zipfile

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fencepost import plainfile
from fencepost.harness.locked import locked
from fencepost.harness.results import results, run_index
from fencepost.harness.web import archive, patience, site
from fencepost.harness.web.shelf import Shelf
from tests.harness.web.conftest import HERE, name_of


def listed(page):
    """Return the tests of the runs that a list shows, in its order."""
    return re.findall(r'<td class="name"><a href="[^"]*">([^<]*)</a>', page.text)


def heading(page):
    return re.sub(r"<.*?>", "", re.search(r"<h1.*?</h1>", page.text, re.S)[0]).strip()


@pytest.fixture
def some(made):
    made("one", True, lock="redis", nemesis=["clock", "kill"], holds=7)
    made("two", False, lock="etcd", holds=300)
    made("three", "unknown", lock="redis", nemesis=["pause:client"], holds=20)
    made("four")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["four", "three", "two", "one"]),
        ("sort=began", ["one", "two", "three", "four"]),
        ("sort=-holds", ["two", "three", "one", "four"]),
        ("sort=holds", ["one", "three", "two", "four"]),
        ("sort=run", ["four", "one", "three", "two"]),
        ("sort=nonsense", ["four", "three", "two", "one"]),
        ("text=T", ["three", "two"]),
        ("verdict=invalid", ["two"]),
        ("verdict=none", ["four"]),
        ("lock=redis", ["four", "three", "one"]),
        ("lock=red", []),
        ("fault=kill", ["one"]),
        ("kind=suite", []),
        ("lock=redis&verdict=valid", ["one"]),
    ],
)
def test_runs_are_listed_filtered_and_sorted(some, browser, query, found):
    page = browser.get(f"/?{query}")
    assert (page.status_code, listed(page)) == (200, found)


def test_a_click_on_a_title_sorts_and_another_one_turns_round_and_filters_stay(some, browser):
    (click,) = re.findall(r'href="([^"]*)">holds', browser.get("/?lock=redis").text)
    assert click == "/?lock=redis&amp;sort=-holds"
    page = browser.get("/?lock=redis&sort=-holds")
    assert re.findall(r'href="([^"]*)">holds', page.text) == ["/?lock=redis&amp;sort=holds"]
    assert 'aria-sort="descending"' in page.text


def test_a_long_list_shows_the_first_ones_and_how_many_more_there_are(made, browser, monkeypatch):
    monkeypatch.setattr("fencepost.harness.web.site._SHOWN", 2)
    for name in ("one", "two", "three"):
        made(name)
    page = browser.get("/")
    assert listed(page) == ["three", "two"]
    (more,) = re.findall(r'href="([^"]*)">1 more', page.text)
    assert listed(browser.get(more.replace("&amp;", "&"))) == ["three", "two", "one"]


def test_a_run_that_is_judged_again_is_listed_with_its_new_verdict(made, browser):
    run = made("one", True)
    assert listed(browser.get("/?verdict=valid")) == ["one"]
    stored = results.read(run)
    results.write(run / "results.json", stored | {"valid": "unknown"})
    assert listed(browser.get("/?verdict=valid")) == []
    assert listed(browser.get("/?verdict=unknown")) == ["one"]


def test_an_empty_folder_says_how_to_make_a_run(browser):
    assert "fencepost test redis" in browser.get("/").text


def test_the_page_of_a_run_has_its_verdict_settings_and_files(made, browser):
    run = made("one", False, nemesis=["kill"])
    (run / "nodes").mkdir()
    (run / "nodes" / "a b.log").write_text("a <line>\n")
    page = browser.get(f"/run/{name_of(run)}")
    assert heading(page) == "INVALID resource"
    assert "As it is." in page.text and "kill" in page.text
    log = browser.get(re.search(r'href="(/files/[^"]*a%20b.log)"', page.text)[1])
    assert (log.text, log.headers["content-type"]) == ("a <line>\n", "text/plain; charset=utf-8")
    report = browser.get(f"/files/{name_of(run)}/report.html")
    assert report.text == "<p>the report</p>"
    assert "sandbox allow-scripts" in report.headers["content-security-policy"]


def test_latest_is_the_run_that_it_names(made, browser):
    made("one", True)
    last = made("one", False)
    assert name_of(last) in browser.get("/run/one/latest").text
    assert heading(browser.get("/run/latest")) == "INVALID resource"


def test_names_are_shown_as_they_are_and_are_no_markup(made, browser):
    run = made("<b>&'\"", True)
    page = browser.get("/")
    assert "<b>" not in page.text
    (link,) = re.findall(r'<td class="name"><a href="([^"]*)"', page.text)
    assert heading(browser.get(link)) == "valid"
    assert run.exists()


def test_two_runs_are_shown_side_by_side(made, browser):
    one, other = made("one", True), made("one", False)
    page = browser.get("/compare", params={"run": [name_of(one), name_of(other)]})
    assert heading(page) == "The results are different."
    assert re.search(r'class="differs"><th>resource</th><td>true</td><td>false</td>', page.text)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_it_takes_two_to_be_compared(made, browser, count):
    runs = [name_of(made("one", True)) for _ in range(count)]
    page = browser.get("/compare", params={"run": runs})
    assert (page.status_code, heading(page)) == (400, f"Select two runs to compare, not {count}.")


def unpacked(answer):
    assert answer.headers["content-type"] == "application/zip"
    return zipfile.ZipFile(io.BytesIO(answer.content))


def test_a_run_downloads_as_a_zip_file_that_unpacks_into_a_results_folder(made, browser, tmp_path):
    run = made("one", True)
    secret = tmp_path / "secret"
    secret.write_text("not of this run")
    (run / "linked").symlink_to(secret)
    answer = browser.get("/zip", params={"run": name_of(run)})
    assert f"one-{run.name}.zip" in answer.headers["content-disposition"]
    archive = unpacked(answer)
    assert archive.testzip() is None
    names = ("history.jsonl", "report.html", "results.json", "test.json")
    assert archive.namelist() == [f"{name_of(run)}/{name}" for name in names]
    for name in names:
        assert archive.read(f"{name_of(run)}/{name}") == (run / name).read_bytes()


def test_a_suite_is_zipped_with_the_runs_that_it_names_and_with_nothing_else(made, browser, root):
    one, _ = made("one", True), made("two", True)
    folder = results.create("suite-redis")
    rows = [{"test": "one", "run": f"../../{name_of(one)}"}, {"test": "x", "run": "../../../.."}]
    results.write(folder / "suite.json", rows)
    archive = unpacked(browser.get("/zip", params={"run": name_of(folder)}))
    tops = {"/".join(name.split("/")[:2]) for name in archive.namelist()}
    assert tops == {name_of(folder), name_of(one)}


def test_runs_are_deleted_once_that_was_confirmed(made, browser):
    keep, gone, too = made("one", True), made("one", True), made("two", True)
    chosen = {"run": [name_of(gone), name_of(too)]}
    asked = browser.get("/remove", params=chosen)
    assert heading(asked).startswith("Delete 2 runs for good")
    assert gone.exists() and too.exists()
    answer = browser.post("/remove", data=chosen, headers={"Origin": HERE})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert (keep.exists(), gone.exists(), too.parent.exists()) == (True, False, False)


def test_neither_a_run_in_progress_nor_runs_chosen_with_it_are_deleted(made, browser):
    one, live = made("one", True), made("two")
    chosen = {"run": [name_of(one), name_of(live)]}
    with locked(live):
        assert "end it first" in browser.get("/remove", params=chosen).text
        answer = browser.post("/remove", data=chosen, headers={"Origin": HERE})
    assert (answer.status_code, "is still running" in answer.text) == (400, True)
    assert one.exists() and live.exists()


def test_a_run_that_was_deleted_meanwhile_is_a_sentence(made, browser):
    answer = browser.get("/run/one/20260102T030405.000000Z")
    assert answer.status_code == 404
    assert heading(answer).endswith("is not in the results folder.")


def test_a_run_with_corrupt_files_has_a_page_with_the_reason(made, browser):
    run = made("one", True)
    (run / "results.json").write_text('{"valid": ')
    assert listed(browser.get("/?verdict=none")) == ["one"]
    page = browser.get(f"/run/{name_of(run)}")
    assert (page.status_code, "cannot be used" in heading(page)) == (200, True)


def test_a_folder_that_hangs_keeps_no_other_from_being_listed(made, monkeypatch):
    for name in ("one", "two", "three"):
        made(name, True)
    answers, read = threading.Event(), run_index.entry_of

    def hangs(folder, name):
        if folder.parent.name == "two":
            answers.wait()
        return read(folder, name)

    monkeypatch.setattr(run_index, "entry_of", hangs)
    shelf = Shelf(patience_s=0.02)
    for _ in range(3):
        rows = {row["test"]: row["verdict"] for row in shelf.rows()}
        assert rows == {"three": "valid", "two": "none", "one": "valid"}
    (reader,) = shelf._stuck.values()  # one thread waits, however often the list is read
    answers.set()
    reader.join()
    assert {row["verdict"] for row in shelf.rows()} == {"valid"}


def test_names_that_are_no_text_are_listed_shown_and_zipped(made, browser, root):
    run = made("one", True)
    (run / os.fsdecode(b"a\xff")).write_text("a")
    (run / "..\\..\\evil.bat").write_text("b")
    os.utime(run / "test.json", (2**33, 2**33))
    assert browser.get(f"/run/{name_of(run)}").status_code == 200
    content = browser.get(f"/zip?run={name_of(run)}").content
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert f"{name_of(run)}/a?" in names
    assert not any("\\" in name for name in names)
    run.parent.rename(root / os.fsdecode(b"b\xff"))
    assert listed(browser.get("/")) == ["b?"]


@pytest.fixture
def hanging(monkeypatch):
    """Let the files of the run `two` hang within the block, for 0.2 s of patience."""
    answers, is_run = threading.Event(), run_index.is_run

    def hangs(folder):
        if folder.parent.name == "two":
            answers.wait()
        return is_run(folder)

    monkeypatch.setattr(run_index, "is_run", hangs)
    monkeypatch.setattr(patience, "PATIENCE_S", 0.2)
    yield answers
    answers.set()


def test_a_run_whose_file_system_hangs_keeps_one_thread_and_no_other_page(
    made, browser, hanging, monkeypatch
):
    runs = [name_of(made(name, True)) for name in ("one", "two")]
    before = threading.active_count()
    for _ in range(3):
        page = browser.get(f"/run/{runs[1]}")
        assert (page.status_code, "does not answer" in heading(page)) == (503, True)
    deadline = time.monotonic() + 120
    while threading.active_count() > before + 1:  # a thread of the test's client ends by itself
        assert time.monotonic() < deadline
    monkeypatch.setattr(patience, "PATIENCE_S", 30.0)  # a busy machine is slow, too
    assert browser.get(f"/run/{runs[0]}").status_code == 200
    assert browser.get("/style.css").status_code == 200
    hanging.set()
    deadline = time.monotonic() + 120
    while browser.get(f"/run/{runs[1]}").status_code != 200:
        assert time.monotonic() < deadline


def test_a_run_is_shown_while_another_run_of_its_test_hangs(made, browser, hanging, monkeypatch):
    other, run = made("one", True), made("one", True)
    is_run = run_index.is_run
    monkeypatch.setattr(
        run_index, "is_run", lambda folder: (folder == run and is_run(folder)) or hanging.wait()
    )
    page = browser.get(f"/run/{name_of(run)}")
    assert page.status_code == 200 and other.name in page.text


class Hanging(io.BytesIO):
    """A file of three pieces, of which the one of this number is never read."""

    def __init__(self, number, answers):
        super().__init__(b"x" * 3 * site._PIECE)
        self.number, self.answers = number, answers

    def fileno(self):
        return 0  # which has a size too

    def read(self, size=-1):
        if self.tell() >= self.number * site._PIECE:
            self.answers.wait()
        return super().read(size)


@pytest.fixture
def hanging_file(monkeypatch):
    """Let the files that are opened hang at the piece of this number, for 0.2 s of patience."""
    answers = threading.Event()
    monkeypatch.setattr(patience, "PATIENCE_S", 0.2)
    monkeypatch.setattr(run_index, "is_live", lambda folder: True)

    def hang(number):
        monkeypatch.setattr(plainfile, "opened", lambda path: Hanging(number, answers))
        monkeypatch.setattr(
            archive.os, "fdopen", lambda file, mode: os.close(file) or Hanging(number, answers)
        )

    yield hang
    answers.set()


def threads_of_answers():
    return {thread for thread in threading.enumerate() if thread.name == patience.THREAD}


@pytest.mark.parametrize("address", ["/files/{}/history.jsonl", "/zip?run={}"])
def test_a_download_that_hangs_at_its_start_is_refused_and_keeps_one_thread(
    made, browser, hanging_file, eventually, address
):
    asked = address.format(name_of(made("one", True)))
    hanging_file(0)
    before = threads_of_answers()
    for _ in range(3):
        page = browser.get(asked)
        assert (page.status_code, "does not answer" in heading(page)) == (503, True)
    eventually(lambda: len(threads_of_answers() - before) == 1)


def test_a_download_that_hangs_on_its_way_stays_incomplete(made, hanging_file, caplog):
    name = name_of(made("one", True))
    hanging_file(2)
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        await asyncio.Event().wait()

    scope = {
        "type": "http", "method": "GET", "scheme": "http", "server": ("127.0.0.1", 8080),
        "path": f"/files/{name}/history.jsonl", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8080")],
    }  # fmt: skip
    asyncio.run(asyncio.wait_for(site.site()(scope, receive, send), 120))
    start, *pieces = sent
    assert start["status"] == 200
    assert [len(piece["body"]) for piece in pieces] == [site._PIECE] * 2
    assert all(piece["more_body"] for piece in pieces)
    assert "does not answer" in caplog.text


def test_a_client_that_leaves_a_hanging_download_leaves_no_second_thread(hanging_file):
    stopped, patient = threading.Event(), patience.Patient()
    request = Request({
        "type": "http", "method": "GET", "path": "/a", "query_string": b"", "headers": [],
        "server": ("a", 1),
    })  # fmt: skip

    async def leave():
        asked = asyncio.create_task(patient.do(request, stopped.wait))
        await asyncio.sleep(0)
        asked.cancel()
        while not patient._stuck:
            await asyncio.sleep(0.01)
        with pytest.raises(HTTPException):
            await patient.do(request, stopped.wait)

    asyncio.run(asyncio.wait_for(leave(), 120))
    stopped.set()


def test_a_form_that_never_arrives_is_refused(browser, monkeypatch):
    monkeypatch.setattr(site, "PATIENCE_S", 0.05)

    async def receive():
        await asyncio.sleep(60)

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(HTTPException, match="did not arrive in time"):
        asyncio.run(site._body(request))
