"""An elector whose behaviour depends on the election's name."""

from __future__ import annotations

import threading
import time

from fencepost_sdk import run


class Elector:
    def __init__(self, servers, **options):
        if options["mute"]:
            raise OSError("no server answers")
        self.resigned = threading.Event()

    def run(self, name, identity, ttl, started, stopped):
        if name == "refused":
            raise OSError("no server answers")
        if name == "never":
            threading.Event().wait()
        if name == "stops-first":
            stopped()
        if name == "over":
            started(deadline=time.monotonic() - 1)
        elif name == "renewed":
            started(7, time.monotonic() + ttl)(time.monotonic() + 2 * ttl)
        else:
            started()
        if name == "twice":
            started()
        if name == "raises":
            raise OSError("connection reset")
        if name == "returns":
            return
        if name == "stuck":
            threading.Event().wait()
        if name != "stops":
            self.resigned.wait()
        stopped()

    def resign(self):
        self.resigned.set()

    def is_leader(self):
        return False


if __name__ == "__main__":
    run(Elector)
