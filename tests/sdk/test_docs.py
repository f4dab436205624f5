"""The locks of docs/your-lock.md in other languages work when built by its commands."""

from __future__ import annotations

import shlex

import pytest

from tests.sdk.page import FILES, build

pytestmark = pytest.mark.slow


@pytest.fixture(params=FILES)
def program(request, tmp_path, monkeypatch):
    """Return the command of the page's program, once it was built, in the folder of its files."""
    options = build(request.param, tmp_path, monkeypatch)
    assert options["--ship"] == "build"
    monkeypatch.chdir(tmp_path / "build")
    return shlex.split(options["--program"])


def test_a_lock_of_the_page_locks(program, redis, start_command):
    at = ["127.0.0.1", redis.server_address[1]]
    first, second = (start_command(program, at) for _ in range(2))
    first.hear(), second.hear()
    held = first.acquire(ttl_ms=60_000)
    assert held["type"] == "ok" and held["value"]["deadline"] is not None
    refused = second.acquire()
    assert (refused["type"], refused["error"][0]) == ("fail", "not-granted")
    assert first.op("release", lock="orders", hold=held["value"]["hold"])["type"] == "ok"
    held = second.acquire(ttl_ms=60_000)
    assert held["type"] == "ok"
    redis.redis.delete("orders")
    gone = second.op("release", lock="orders", hold=held["value"]["hold"])
    assert (gone["type"], gone["error"][0]) == ("fail", "not-held")
