"""One fault of each kind, for tests of receipts."""

from __future__ import annotations

from fencepost.nemesis.nemesis import Fault


def cut(*links):
    targets = sorted({node for link in links for node in link})
    return Fault("cut", "partition", targets, {"links": [list(link) for link in links]})


CUT = cut(("client-1", "redis-1"), ("redis-2", "redis-3"))
PAUSE_SERVER = Fault("p", "pause", ["redis-1"])
PAUSE_CLIENT = Fault("p", "pause", ["client-1"])
JUMP = Fault("c", "clock", ["redis-3"], {"offset_s": -5.5})
KILL_SERVER = Fault("k", "kill", ["redis-1"])
KILL_CLIENT = Fault("k", "kill", ["client-1"])
DELAYED = Fault("h", "delay", ["client-1", "redis-1"], {"source": "client-1", "to": "redis-1"})
REJECTED = Fault("r", "partition", CUT.targets, CUT.arguments | {"how": "reject"})
ONE_WAY = {"links": [["client-1", "redis-1"], ["client-1", "redis-2"]]}
REQUESTS = Fault("q", "partition", ["client-1"], ONE_WAY | {"lost": "requests"})
REPLIES = Fault("y", "partition", ["client-1"], ONE_WAY | {"lost": "replies"})
CRASHES = Fault("ks", "kill", ["redis-1", "redis-2", "client-2"], {"data": "wiped"})
PAUSES = Fault("ps", "pause", ["redis-1", "redis-2"])
LEFT = Fault("l", "membership", ["redis-4"])
LATE = Fault("d", "packet", ["redis-1"], {"kind": "delay"})
