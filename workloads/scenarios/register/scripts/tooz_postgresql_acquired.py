"""tooz, PostgreSQL driver: `acquired` stays True when another client has the lock.

Run with tooz 9.1.0, psycopg2 2.9.13, PostgreSQL 15, Python 3.11.
Needs: pip install tooz==9.1.0 psycopg2-binary; Debian's postgresql.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import psycopg2
from tooz import coordination

from frame.postgres_server import postgres_server
from frame.processes import wait_for


def show(port):
    url = f"postgresql://postgres@127.0.0.1:{port}?dbname=postgres"
    first = coordination.get_coordinator(url, b"first")
    second = coordination.get_coordinator(url, b"second")
    first.start()
    second.start()
    mine, other = first.get_lock(b"job"), second.get_lock(b"job")
    if not mine.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    admin = psycopg2.connect(host="127.0.0.1", port=port, user="postgres")
    admin.autocommit = True
    with admin.cursor() as cursor:  # the server ends the connection, as a restart does
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    wait_for(lambda: other.acquire(blocking=False), "the lock is not freed", 20)
    first.heartbeat()
    both = mine.acquired and other.acquired
    assert not both, "the second client holds the lock, and `acquired` of the first is still True"


if __name__ == "__main__":
    with postgres_server() as server:
        show(server.port)
