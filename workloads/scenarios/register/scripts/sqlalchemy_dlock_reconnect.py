"""sqlalchemy-dlock: a lock whose session was lost is still `locked` after the reconnect.

Run with sqlalchemy-dlock 0.9.0, SQLAlchemy 2.1.9, psycopg2 2.9.13, PostgreSQL 15, Python 3.11.
Needs: pip install sqlalchemy-dlock==0.9.0 sqlalchemy psycopg2-binary; Debian's postgresql.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import sqlalchemy
from sqlalchemy_dlock import create_sadlock

from frame.postgres_server import postgres_server
from frame.processes import wait_for


def show(port):
    engine = sqlalchemy.create_engine(f"postgresql+psycopg2://postgres@127.0.0.1:{port}/postgres")
    one, two, admin = engine.connect(), engine.connect(), engine.connect()
    mine, other = create_sadlock(one, "job"), create_sadlock(two, "job")
    if not mine.acquire(block=False):
        raise RuntimeError("the lock was not free at the start")
    one.commit()
    end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
    admin.execute(sqlalchemy.text(end))
    wait_for(lambda: other.acquire(block=False), "the lock is not freed", 20)
    try:
        one.execute(sqlalchemy.text("SELECT 1"))
    except sqlalchemy.exc.OperationalError:
        one.rollback()  # as SQLAlchemy documents it: the connection is opened again
    works = one.execute(sqlalchemy.text("SELECT 1")).scalar() == 1
    both = works and mine.locked and other.locked
    assert not both, (
        "the second client holds the lock; the first, reconnected, still has locked=True"
    )


if __name__ == "__main__":
    with postgres_server() as server:
        show(server.port)
