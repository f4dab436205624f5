"""The issue about a changed outcome, with a fake of the service on this machine."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fencepost.harness.campaigns import issue
from fencepost.harness.errors import BadArguments, Crashed

CHANGED = {
    "key": "suite/a", "lock": "redis", "sure": True, "marks": ["NOT as published"],
    "crashed": False, "expected": "resource broken", "said": "fine | <!-- x --> @all", "run": "",
    "holds": None, "rates": {}, "acquire_ms": {}, "regrant_s": [], "duration_s": None,
    "state": "changed", "known": {},
}  # fmt: skip


def night(*entries):
    return {"seed": 7, "budget_s": 60.0, "began": "2026-01-02T03:04:05Z", "entries": list(entries)}


class Service:
    def __init__(self, open_issues=(), code=200, moved=""):
        self.asked = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                service.asked.append((self.command, self.path, dict(self.headers), body))
                found = list(open_issues) if self.command == "GET" else {"number": 12}
                self.send_response(302 if moved else code)
                if moved:
                    self.send_header("Location", moved)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.environment = {
            "GITHUB_API_URL": f"http://127.0.0.1:{self.server.server_port}",
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_TOKEN": "secret",
        }

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def test_the_first_changed_nightly_run_opens_an_issue():
    with Service() as service:
        assert (
            issue.report(night(CHANGED), service.environment, "https://it")
            == "Issue 12 was opened."
        )
    (get, place, _, _), (post, made, headers, body) = service.asked
    assert (get, place) == (
        "GET",
        "/repos/owner/name/issues?state=open&labels=nightly&per_page=100",
    )
    assert (post, made) == ("POST", "/repos/owner/name/issues")
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Content-Type"] == "application/json"
    assert set(body) == {"title", "body", "labels"} and body["labels"] == ["nightly"]
    assert body["body"].startswith(issue.MARK) and body["body"].endswith("https://it")
    assert "suite/a" in body["body"] and "published: resource broken" in body["body"]


def test_the_next_one_updates_it_and_opens_none():
    others = [
        {"number": 3, "body": "another"},
        {"number": 4, "body": issue.MARK, "pull_request": {}},
        {"number": 5, "body": f"{issue.MARK}\nbefore"},
    ]
    with Service(others) as service:
        assert issue.report(night(CHANGED), service.environment) == "Issue 5 was updated."
    assert [asked[:2] for asked in service.asked[1:]] == [("PATCH", "/repos/owner/name/issues/5")]
    assert set(service.asked[1][3]) == {"body"}


def test_an_unchanged_nightly_run_sends_no_request():
    assert "no issue is needed" in issue.report(night(CHANGED | {"state": "same"}), {})


def test_text_from_a_server_is_escaped():
    with Service() as service:
        issue.report(night(CHANGED), service.environment)
    body = service.asked[1][3]["body"]
    assert body.count("<!--") == 1  # the mark
    assert "&lt;!--" in body and "@all" not in body and "fine \\| " in body


def test_a_refusal_and_a_silent_service_give_a_remedy():
    with Service(code=403) as service, pytest.raises(Crashed, match=r"refused: 403 .*write issues"):
        issue.report(night(CHANGED), service.environment)
    with pytest.raises(Crashed, match="failed:"):
        issue.report(night(CHANGED), service.environment)


def test_the_token_goes_nowhere_else():
    with Service() as other, Service(moved=other.environment["GITHUB_API_URL"]) as service:
        with pytest.raises(Crashed, match="302"):
            issue.report(night(CHANGED), service.environment)
        assert other.asked == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"GITHUB_TOKEN": ""}, "GITHUB_TOKEN must be set"),
        ({"GITHUB_API_URL": "http://example.org"}, "not an https address"),
        ({"GITHUB_REPOSITORY": "owner/name/../x"}, "not OWNER/NAME"),
    ],
)
def test_invalid_variables_are_refused(changes, said):
    environment = Service().environment | changes
    with pytest.raises(BadArguments, match=said):
        issue.report(night(CHANGED), environment)
