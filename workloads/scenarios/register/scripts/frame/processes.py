"""Servers as local processes."""

import signal
import socket
import subprocess
import time
from collections import namedtuple
from contextlib import contextmanager

Server = namedtuple("Server", "port process")
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def listens(port):
    socket.create_connection(("127.0.0.1", port), timeout=1).close()
    return True


@contextmanager
def running(command, port=None, is_ready=listens, end=signal.SIGKILL, **options):
    """Run a process until the block ends. With a port, wait first until it is ready."""
    process = subprocess.Popen(command, **QUIET | options)

    def ready():
        if process.poll() is not None:
            raise RuntimeError(f"{command[0]} ended early")
        return port is None or is_ready(port)

    try:
        wait_for(ready, f"{command[0]} does not start")
        yield Server(port, process)
    finally:
        process.send_signal(end)
        process.wait()


def wait_for(condition, what, limit_s=90, every_s=0.01):
    """Return the value of the condition once it is true. An OSError counts as false."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except OSError:
            pass
        time.sleep(every_s)
    raise RuntimeError(f"waited {limit_s} s in vain: {what}")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def free_ports(count):
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in listeners]
    for one in listeners:
        one.close()
    return ports
