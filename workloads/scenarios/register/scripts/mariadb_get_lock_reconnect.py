"""MariaDB's GET_LOCK with PyMySQL: ping() reconnects in silence, and the lock is lost.

Run with PyMySQL 1.2.4, MariaDB 10.11, Python 3.11.
Needs: pip install PyMySQL; Debian's mariadb-server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import pymysql

from frame.mariadb_server import mariadb_server
from frame.processes import wait_for


def asks(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def killed(one, two):
    """The server ends the session, as a failover does."""
    with two.cursor() as cursor:
        cursor.execute(f"KILL CONNECTION {one.thread_id()}")


def idle(one, two):
    """The session is idle for longer than its wait_timeout: its client works on something else."""
    with one.cursor() as cursor:
        cursor.execute("SET SESSION wait_timeout = 1")


def told(port, end):
    """Return whether a client whose lock is lost hears of it."""
    one, two = (pymysql.connect(host="127.0.0.1", port=port, user="root") for _ in range(2))
    if asks(one, "SELECT GET_LOCK('job', 0)") != 1:
        raise RuntimeError("the lock was not free at the start")
    end(one, two)
    wait_for(lambda: asks(two, "SELECT GET_LOCK('job', 0)") == 1, "the lock is not freed")
    try:
        one.ping(reconnect=True)
    except pymysql.Error:
        return True
    finally:
        two.close()
    return False


def show(port):
    silent = [end.__name__ for end in (killed, idle) if not told(port, end)]
    assert not silent, (
        f"ping() returned as if nothing had happened ({', '.join(silent)}): the lock is lost, and "
        "another has it"
    )


if __name__ == "__main__":
    with mariadb_server() as server:
        show(server.port)
