"""Conditional writes of S3-like services: broken ones are found, sound ones are not accused."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.conditional_writes import ConditionalWrites
from fencepost.workloads.transport.s3_link import Keys, S3Link, keys_of, signature


class Service(BaseHTTPRequestHandler):
    """A sound service in memory. `objects`: their bodies and ETags, by path."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        found = self.server.objects.get(self.path)
        self.answer(200, found[0], ETag=found[1]) if found else self.answer(404)

    def do_DELETE(self):
        self.server.objects.pop(self.path, None)
        self.answer(204)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            if not self.path.startswith("/bucket/"):
                self.answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            elif self.allowed():
                self.write(body)
            else:
                self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")

    def write(self, body):
        etag = f'"{uuid.uuid4().hex}"'
        self.server.objects[self.path] = (body, etag)
        self.answer(200, ETag=etag)

    def allowed(self):
        found = self.server.objects.get(self.path)
        if self.headers["If-None-Match"] == "*" and found:
            return False
        wanted = self.headers["If-Match"]
        return wanted is None or bool(found and found[1] == wanted)


class IgnoresIfNoneMatch(Service):
    def allowed(self):
        found = self.server.objects.get(self.path)
        wanted = self.headers["If-Match"]
        return wanted is None or bool(found and found[1] == wanted)


class IgnoresIfMatch(Service):
    def allowed(self):
        return not (self.headers["If-None-Match"] == "*" and self.path in self.server.objects)


class LooksFirst(Service):
    """It looks, and writes some time later."""

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        allowed = self.allowed()
        time.sleep(0.005)
        self.write(body) if allowed else self.answer(412)


class LooksFirstToReplace(LooksFirst):
    """The same for If-Match only."""

    def do_PUT(self):
        LooksFirst.do_PUT(self) if self.headers["If-Match"] else Service.do_PUT(self)


class RefusesAndWrites(Service):
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        allowed = self.allowed()
        etag = f'"{uuid.uuid4().hex}"'
        self.server.objects[self.path] = (body, etag)
        self.answer(200, ETag=etag) if allowed else self.answer(412)


class HasNoConditions(Service):
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        has = self.headers["If-None-Match"] or self.headers["If-Match"]
        self.answer(501, b"<Code>NotImplemented</Code>") if has else self.write(body)


class HasNoIfMatch(Service):
    """As services that have If-None-Match only, for example Amazon S3 in autumn 2024."""

    def do_PUT(self):
        if self.headers["If-Match"]:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(501, b"<Code>NotImplemented</Code>")
        else:
            super().do_PUT()


class Listening(ThreadingHTTPServer):
    request_queue_size = 64  # all clients at once
    daemon_threads = True


@pytest.fixture
def serve():
    servers = []

    def begin(service):
        server = Listening(("127.0.0.1", 0), service)
        server.objects, server.lock = {}, threading.Lock()
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server, f"http://127.0.0.1:{server.server_address[1]}"

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


def played(url, **more):
    trial = ConditionalWrites(S3Link(f"{url}/bucket/locks", **more))
    trial.play()
    return {one.what.partition(":")[0] + f" ({n})": one for n, one in enumerate(trial.found)}


def wrong(found):
    return [one.how for one in found.values() if one.valid is False]


def test_a_sound_service_is_not_accused_and_keeps_no_object_of_the_check(serve):
    server, url = serve(Service)
    found = played(url)
    assert [one.valid for one in found.values()] == [True] * 6, found
    assert server.objects == {}


@pytest.mark.parametrize(
    ("service", "how"),
    [
        (IgnoresIfNoneMatch, "it was granted, too (200), and the object is now its own"),
        (IgnoresIfMatch, "it replaced the object of another client (200)"),
        (LooksFirst, "of 8 were granted"),
        (LooksFirstToReplace, "of 8 were granted"),
        (RefusesAndWrites, "but the object was replaced"),
        (HasNoConditions, "501 NotImplemented"),
    ],
)
def test_a_broken_service_is_told(serve, service, how):
    server, url = serve(service)
    said = wrong(played(url))
    assert any(how in one for one in said), said
    assert server.objects == {}


def test_a_service_that_looks_before_it_replaces_is_only_wrong_about_that(serve):
    _, url = serve(LooksFirstToReplace)
    assert len(wrong(played(url))) == 1


def test_a_service_without_if_match_is_not_accused(serve):
    _, url = serve(HasNoIfMatch)
    found = played(url)
    assert wrong(found) == []
    assert [one.valid for one in found.values()][-1] == "unknown"


def test_a_bucket_that_does_not_exist_and_a_service_that_is_down_are_bad_arguments(serve):
    server, url = serve(Service)
    with pytest.raises(BadArguments, match="404 NoSuchBucket"):
        ConditionalWrites(S3Link(f"{url}/other")).play()
    server.shutdown()
    server.server_close()
    with pytest.raises(BadArguments, match="does not answer"):
        ConditionalWrites(S3Link(f"{url}/bucket")).play()


@pytest.mark.parametrize(
    "url", ["bucket", "ftp://host/bucket", "http://host", "http://host/", "http://host/a?b=c"]
)
def test_another_url_is_refused(url):
    with pytest.raises(ValueError, match=r"is not an http|does not end with"):
        S3Link(url)


def test_the_command_exits_by_what_it_found(serve, monkeypatch, capsys):
    def check(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", "check", *words])
        return app.run(), " ".join("".join(capsys.readouterr()).split())

    _, sound = serve(Service)
    _, broken = serve(IgnoresIfNoneMatch)
    code, said = check("--s3", f"{sound}/bucket")
    assert (code, "Its objects can be locks." in said) == (0, True), said
    code, said = check("--s3", f"{broken}/bucket")
    assert (code, "2 to fix." in said) == (1, True), said
    for words in (("--s3", "bucket"), ("redis", "--s3", f"{sound}/bucket")):
        assert check(*words)[0] == 254


def test_a_request_is_signed_as_amazon_s_documentation_shows_it():
    """The example "GET Object" of "Authenticating Requests: Using the Authorization Header"."""
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    headers = {"host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9"}
    now = time.strptime("20130524T000000Z", "%Y%m%dT%H%M%SZ")
    signed = signature(keys, "GET", "/test.txt", headers, b"", now)
    assert signed["authorization"].endswith(
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def test_the_keys_are_those_of_the_environment():
    both = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
    assert keys_of({"AWS_ACCESS_KEY_ID": "id"}) is None
    assert keys_of(both) == Keys("id", "secret")
    assert keys_of({**both, "AWS_DEFAULT_REGION": "eu-1", "AWS_SESSION_TOKEN": "t"}) == Keys(
        "id", "secret", "t", "eu-1"
    )
    assert "secret" not in repr(keys_of(both))
