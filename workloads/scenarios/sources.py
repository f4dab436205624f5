"""The published sources of the scenarios: author, title, year. claims.py has the claims."""

from __future__ import annotations

from typing import Final

KLEPPMANN: Final = "Martin Kleppmann, How to do distributed locking, 2016"
COMMENTS: Final = f"{KLEPPMANN}, comments"
SANFILIPPO: Final = "Salvatore Sanfilippo, Is Redlock safe?, 2016"
BURROWS: Final = "Mike Burrows, The Chubby lock service, OSDI 2006"
OVERVIEW: Final = "An overview of distributed locks with Redis, etcd and Chubby"
SERVICE: Final = "Building a distributed lock service"
JEPSEN: Final = "Kyle Kingsbury, Jepsen: etcd 3.4.3, 2020; etcd issue 11456"
REDIS_IO: Final = "redis.io, Distributed locks with Redis"
JEPSEN_2013: Final = "Kyle Kingsbury, Jepsen: Redis, 2013"
JEPSEN_2025: Final = "Kyle Kingsbury, Jepsen: NATS 2.12.1, 2025"
RECIPES: Final = "ZooKeeper Recipes and Solutions"
EVICTION: Final = "redis.io, Key eviction"
WAIT: Final = "redis.io, WAIT"
SEEN: Final = "docs/libraries.md"
