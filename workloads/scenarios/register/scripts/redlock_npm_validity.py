"""redlock (npm): acquire returns a lock that has expired, and that another client holds.

Run with redlock 5.0.0-beta.2, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install redlock@5.0.0-beta.2 ioredis, with NODE_PATH set to that node_modules;
redis-server and node in the PATH. PACKAGE=@sesamecare-oss/redlock runs that fork.
CONTROL=1 delays the answers for less than the TTL.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os

from frame.redlock_npm_late import show_late

if __name__ == "__main__":
    show_late(os.environ.get("PACKAGE", "redlock"))
