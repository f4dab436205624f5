"""No path leads out of the results folder, no other site in, and nothing leaves the machine."""

from __future__ import annotations

import os
import re

import pytest
from starlette.testclient import TestClient

from fencepost.harness.results import results
from fencepost.harness.web import place
from fencepost.harness.web.site import site
from tests.harness.web.conftest import HERE, name_of


@pytest.fixture
def secret(root):
    path = root.parent / "secret"
    path.write_text("a secret")
    return path


@pytest.fixture
def run(made):
    return made("one", True)


@pytest.mark.parametrize(
    "disguise",
    [
        "../secret",
        "../../../secret",
        "%2e%2e/%2e%2e/%2e%2e/secret",
        "..%2f..%2f..%2fsecret",
        "%2e%2e%2f%2e%2e%2f%2e%2e%2fsecret",
        "..%5c..%5c..%5csecret",
        "%252e%252e/secret",
        "%2e/test.json",
        "test.json/",
        "test.json%00.html",
        "nodes/%0a",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "linked",
        "folder/secret",
        "round/round/x",
        "pipe",
        "",
        "x" * 5000,
    ],
)
def test_no_path_leads_out_of_a_run(run, secret, browser, disguise):
    (run / "linked").symlink_to(secret)
    (run / "folder").symlink_to(secret.parent)
    (run / "round").symlink_to(run / "round")
    os.mkfifo(run / "pipe")
    for page in ("files", "run"):
        answer = browser.get(f"/{page}/{name_of(run)}/{disguise}")
        assert (answer.status_code, "a secret" in answer.text) == (404, False)


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "..", ".", "", "one", "one/..", "a\0b/c", "one//x"]
)
def test_a_name_that_is_none_of_a_run_is_refused(run, secret, name):
    for ask in (place.run, place.file):
        with pytest.raises(place.NotHere):
            ask(name)


def test_files_next_to_the_runs_are_not_shown(run, root, browser):
    (root / "notes").mkdir()
    (root / "notes" / "mine.txt").write_text("a secret")
    (root / "one" / "other").mkdir()
    (root / "one" / "other" / "mine.txt").write_text("a secret")
    for path in ("notes/mine.txt", "one/other/mine.txt", "one/other"):
        assert browser.get(f"/files/{path}").status_code == 404
        assert browser.get(f"/run/{path}").status_code == 404


def test_a_test_or_a_run_that_is_a_link_out_of_the_folder_is_not_found(run, root, browser):
    (root.parent / "elsewhere").mkdir()
    other = root.parent / "elsewhere" / run.name
    run.rename(other)
    (root / "linked").symlink_to(other.parent)
    (root / "one" / run.name).symlink_to(other)
    assert other.name not in browser.get("/").text
    for test in ("linked", "one"):
        name = f"{test}/{run.name}"
        assert browser.get(f"/files/{name}/test.json").status_code == 404
        assert browser.get("/zip", params={"run": name}).status_code == 404
        posted = browser.post("/remove", data={"run": name}, headers={"Origin": HERE})
        assert posted.status_code == 404
    assert (other / "test.json").exists()


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.example", "https://127.0.0.1:8080", "http://127.0.0.1:8081"],
)
def test_a_page_of_another_site_deletes_nothing(run, browser, origin):
    headers = {"Origin": origin} if origin else {}
    answer = browser.post("/remove", data={"run": name_of(run)}, headers=headers)
    assert (answer.status_code, run.exists()) == (403, True)


def test_a_get_request_deletes_nothing(run, browser):
    assert browser.get("/remove", params={"run": name_of(run)}).status_code == 200
    assert browser.delete("/remove", headers={"Origin": HERE}).status_code == 405
    assert run.exists()


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:8080", 200),
        ("localhost:1", 200),
        ("[::1]:8080", 200),
        ("192.0.2.1", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:8080", 403),
        ("localhost.evil.example", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
def test_a_foreign_host_name_that_resolves_to_this_machine_gets_no_answer(run, browser, host, code):
    answer = browser.get("/", headers={"Host": host})
    assert (answer.status_code, name_of(run) in answer.text) == (code, code == 200)


def test_no_answer_may_load_anything_from_elsewhere(run, browser):
    places = ["/", f"/run/{name_of(run)}", f"/files/{name_of(run)}/report.html", "/nowhere",
              f"/zip?run={name_of(run)}", "/compare", "/style.css", "/script.js",
              f"/remove?run={name_of(run)}"]  # fmt: skip
    for path in places:
        answer = browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none';")
        assert "http" not in policy and "*" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        if answer.headers["content-type"].startswith("text/"):
            assert not re.search(r"(?:src|href)=\"(?:\w+:)?//", answer.text)


def test_a_defect_of_the_application_is_no_way_around_it(run, root, monkeypatch):
    def broken(*_):
        raise RuntimeError("a defect")

    monkeypatch.setattr(results, "root", broken)
    answer = TestClient(site(), base_url=HERE, raise_server_exceptions=False).get("/")
    assert (answer.status_code, "default-src" in answer.headers["content-security-policy"]) == (
        500,
        True,
    )


def test_a_file_is_shown_as_its_type_and_only_a_report_as_a_page(run, browser):
    shown = {"report.html": "text/html", "test.json": "application/json", "x.log": "text/plain",
             "x.py": "text/plain", "x": "text/plain", "x.js": "text/plain"}  # fmt: skip
    for name, kind in shown.items():
        path = run / name
        if not path.exists():
            path.write_text("<script>1</script>")
        answer = browser.get(f"/files/{name_of(run)}/{name}")
        assert answer.headers["content-type"].startswith(kind)
        assert "allow-same-origin" not in answer.headers["content-security-policy"]
