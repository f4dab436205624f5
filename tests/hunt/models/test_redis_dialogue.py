"""The model of Redis answers random dialogues of several connections as a real server does.

It needs redis-server 7.0 (Debian's package); FENCEPOST_REDIS_SERVER names another program.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from random import Random

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as NoConnection

from tests.hunt.models.redis_dialogue import play
from tests.hunt.models.redis_waits import play as play_waits

PROGRAM = os.environ.get("FENCEPOST_REDIS_SERVER") or shutil.which("redis-server")
DIALOGUES, LENGTH, STEPS = 5, 400, 150


@pytest.fixture
def address(tmp_path):
    if PROGRAM is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [PROGRAM, "--port", str(port), "--bind", "127.0.0.1", "--save", "",
             "--dir", str(tmp_path)]  # fmt: skip
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        client = Redis(port=port, retry=None, decode_responses=True)
        until = time.monotonic() + 120
        while True:
            try:
                version = client.info("server")["redis_version"]
                break
            except NoConnection:
                assert time.monotonic() < until and server.poll() is None, "it does not start"
                time.sleep(0.05)
        client.close()
        if not version.startswith("7.0."):
            pytest.skip(f"redis-server is {version}, and not 7.0")
        yield "127.0.0.1", port
    finally:
        server.terminate()
        server.wait(120)


def test_dialogues_of_four_connections_are_those_of_redis(address):
    counts: dict[str, int] = {}
    for seed in range(DIALOGUES):
        for name, count in play(address, seed, LENGTH).items():
            counts[name] = counts.get(name, 0) + count
    # Messages, and transactions that fail.
    assert counts["messages"] > 20 and counts["EXEC, touched"] > 1 and counts["EXEC"] > 10


def test_clients_that_wait_for_a_list_or_a_sorted_set_are_answered_as_by_redis(address):
    ends = play_waits(address, Random("waits"), STEPS)
    assert ends["served"] > 20
