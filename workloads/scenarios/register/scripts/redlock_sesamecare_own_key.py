"""@sesamecare-oss/redlock (npm): a retry of acquire is blocked by the key that its own first attempt has set.

Run with @sesamecare-oss/redlock 1.4.0, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install @sesamecare-oss/redlock@1.4.0 ioredis, with NODE_PATH set to that
node_modules; redis-server and node in the PATH.
CONTROL=1 leaves the key free on two servers of three from the start.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from frame.redlock_npm_retry import show_retry

if __name__ == "__main__":
    show_retry("@sesamecare-oss/redlock")
