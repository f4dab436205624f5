"""redlock-py: one dead server of five, and every acquire raises and leaves four keys behind.

Run with redlock-py 1.0.8, redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install redlock-py==1.0.8 redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import redis
from redlock import Redlock

from frame.processes import free_port
from frame.redis_server import redis_servers


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


if __name__ == "__main__":
    with redis_servers(4) as servers:
        show([server.port for server in servers])
