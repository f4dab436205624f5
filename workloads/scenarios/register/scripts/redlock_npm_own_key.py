"""redlock (npm): a retry of acquire is blocked by the key that its own first attempt has set.

Run with redlock 5.0.0-beta.2, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install redlock@5.0.0-beta.2 ioredis, with NODE_PATH set to that node_modules;
redis-server and node in the PATH. PACKAGE=@sesamecare-oss/redlock runs that fork.
CONTROL=1 leaves the key free on two servers of three from the start.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os

from frame.redlock_npm_retry import show_retry

if __name__ == "__main__":
    show_retry(os.environ.get("PACKAGE", "redlock"))
