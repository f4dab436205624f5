"""tooz, PostgreSQL driver: two names are one lock, because the key has 16 bits.

Run with tooz 9.1.0, psycopg2 2.9.13, PostgreSQL 15, Python 3.11.
Needs: pip install tooz==9.1.0 psycopg2-binary; Debian's postgresql.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from tooz import coordination

from frame.postgres_server import postgres_server


def show(port):
    url = f"postgresql://postgres@127.0.0.1:{port}?dbname=postgres"
    first = coordination.get_coordinator(url, b"first")
    second = coordination.get_coordinator(url, b"second")
    first.start()
    second.start()
    held = first.get_lock(b"lock-2")
    if not held.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    got = second.get_lock(b"lock-137").acquire(blocking=False)
    held.release()
    assert got, "with lock-2 held, lock-137 is refused, although no client holds it"


if __name__ == "__main__":
    with postgres_server() as server:
        show(server.port)
