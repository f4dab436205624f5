"""A lock whose behaviour depends on the lock's name."""

from __future__ import annotations

import sys
import time

from fencepost_sdk import Failed, Grant, Indeterminate, run


class Puppet:
    def __init__(self, client):
        self.client = client
        print("made for", client.servers, client.options["retries"], client.seed)
        if client.options.get("mute"):
            raise OSError("no server answers")

    def acquire(self, name, ttl):
        if name == "lost-at-once":
            self.client.lost(None, "its session ended")
            self.client.lost("another", "not this one's")
        return {
            "no": lambda: False,
            "nothing": lambda: None,
            "token": lambda: Grant(token=2**60 + 1),
            "short": lambda: Grant(deadline=time.monotonic() + ttl / 2),
            "over": lambda: Grant(deadline=time.monotonic() - 1),
            "woken": lambda: Grant(wakeups=2),
            "endless": lambda: Grant(deadline=None),
            "failed": lambda: throw(Failed("somebody else has it")),
            "no-quorum": lambda: throw(Failed("no-quorum", "two of five")),
            "timeout": lambda: throw(Indeterminate("timeout", "no reply")),
            "raises": lambda: throw(ValueError("what now")),
            "nonsense": lambda: "yes",
            "exit": lambda: sys.exit("enough"),
        }.get(name, lambda: True)()

    def extend(self, name, ttl):
        if name == "renewed":
            self.client.renewed(name, time.monotonic() + 3)
            self.client.lost(name, "its lease ran out")
        return name != "not-extended"

    def release(self, name):
        if name == "release-raises":
            raise ValueError("what now")
        return name != "not-released"

    def close(self):
        print("closed")
        if self.client.options.get("close") == "raises":
            raise ValueError("no such socket")


def throw(error):
    raise error


run(lambda client: Puppet(client), promises=["fifo", "one_wakeup"])
