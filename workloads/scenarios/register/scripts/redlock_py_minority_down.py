"""redlock-py: one dead server of five, and every acquire raises and leaves four keys behind.

Run with redlock-py 1.0.8, redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install redlock-py==1.0.8 redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import socket
import subprocess
import tempfile
import time

import redis
from redlock import Redlock


def show(ports):
    nodes = [{"host": "127.0.0.1", "port": port} for port in ports]
    locks = Redlock([*nodes, {"host": "127.0.0.1", "port": free_port()}])  # the fifth is dead
    try:
        got = locks.lock("job", 60_000)
    except Exception as error:
        got = f"{type(error).__name__}"
    left = sum(redis.Redis(port=port).exists("job") for port in ports)
    assert got and not isinstance(got, str), (
        f"with four of five servers alive, lock() ended with {got}, and {left} keys are left behind"
    )


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(folder):
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, port
        except OSError:
            time.sleep(0.05)
    server.kill()
    raise RuntimeError("redis-server did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        servers, ports = [], []
        try:
            for _ in range(4):
                server, port = start(folder)
                servers.append(server)
                ports.append(port)
            show(ports)
        finally:
            for server in servers:
                server.kill()
                server.wait()


if __name__ == "__main__":
    main()
