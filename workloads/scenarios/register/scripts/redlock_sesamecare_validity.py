"""@sesamecare-oss/redlock (npm): acquire returns a lock that has expired.

Run with @sesamecare-oss/redlock 1.4.0, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install @sesamecare-oss/redlock@1.4.0 ioredis, with NODE_PATH set to that
node_modules; redis-server and node in the PATH.
CONTROL=1 delays the answers for less than the TTL.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from frame.redlock_npm_late import show_late

if __name__ == "__main__":
    show_late("@sesamecare-oss/redlock")
