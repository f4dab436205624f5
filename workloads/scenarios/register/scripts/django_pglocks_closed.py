"""django-pglocks: close_old_connections() in a block frees its lock, and Django reconnects.

Run with django-pglocks 1.0.4, Django 5.2.19, psycopg2 2.9.13, PostgreSQL 15, Python 3.11.
Needs: pip install django-pglocks==1.0.4 django psycopg2-binary; Debian's postgresql.
CONTROL=1 keeps the connection.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import time
from contextlib import suppress

import django
from django.conf import settings
from django.db import InterfaceError, close_old_connections, connections
from django_pglocks import advisory_lock

from frame.postgres_server import postgres_server


def show(port):
    one = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres",
           "HOST": "127.0.0.1", "PORT": port}  # fmt: skip
    settings.configure(DATABASES={"default": one, "second": one})
    django.setup()
    with suppress(InterfaceError), advisory_lock("job"):  # its unlock fails on the old connection
        if not os.environ.get("CONTROL"):
            close_old_connections()  # as Channels does at each database_sync_to_async
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")
            works = cursor.fetchone() == (1,)
        both = second_holds(deadline=time.monotonic() + 5)
    for name in connections:
        connections[name].close()
    assert not (works and both), (
        "the second client holds the lock, while the first is in its block and its queries work"
    )


def second_holds(deadline):
    """Return whether another client is granted the lock; the server may take a moment."""
    while time.monotonic() < deadline:
        with advisory_lock("job", wait=False, using="second") as granted:
            if granted:
                return True
        time.sleep(0.05)
    return False


if __name__ == "__main__":
    with postgres_server() as server:
        show(server.port)
