"""Redis as a local process."""

import tempfile
from contextlib import ExitStack, contextmanager

from frame.processes import free_port, running


@contextmanager
def redis_server():
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
        with running(command, port) as server:
            yield server


@contextmanager
def redis_servers(count):
    with ExitStack() as ends:
        yield [ends.enter_context(redis_server()) for _ in range(count)]
