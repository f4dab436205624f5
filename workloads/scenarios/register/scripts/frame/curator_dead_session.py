"""Curator: a client gets a new session shortly before the server ends the old one."""

import os
import subprocess
import tempfile
import time

from frame.curator_program import curator_command
from frame.proxy import proxy
from frame.zookeeper_server import zookeeper_server

CUT = not os.environ.get("CONTROL")
TICK_MS = 8000  # the server looks this often for sessions that have expired


def show_dead_session(program, condition):
    """Run a program with the ports of the server and of a proxy, and the tick. At the first request
    that the condition holds for, the proxy ends the connection and refuses others for a while."""
    closed_until = None

    def request(data):
        nonlocal closed_until
        if CUT and closed_until is None and condition(data):
            closed_until = time.monotonic() + TICK_MS / 1000 + 2
        if closed_until and time.monotonic() < closed_until:
            raise ConnectionError("cut")

    with zookeeper_server(TICK_MS) as server, tempfile.TemporaryDirectory() as folder:
        words = [str(server.port), str(proxy(server.port, request)), str(TICK_MS)]
        ended = subprocess.run(
            [*curator_command(folder, program), *words], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    if ended.returncode:
        raise RuntimeError("the program did not end as planned")
    assert not ended.stdout, ended.stdout.strip()
