"""An elector on one Redis server, with a connection for each request. The first argument names its
defect."""

from __future__ import annotations

import os
import socket
import sys
import time

from fencepost_sdk import run

DEFECT = sys.argv[1]
_IF_MINE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call({}) end return 0"
_KEEP = _IF_MINE.format("'pexpire', KEYS[1], ARGV[2]")
_DELETE = _IF_MINE.format("'del', KEYS[1]")
_PARTS = 8
"""Of a lease: the time until the next request takes one."""


class Elector:
    def __init__(self, servers):
        self.server = servers[0]
        self.resigned = False

    def run(self, name, identity, ttl, started, stopped):
        until, renewed, ms = 0.0, None, int(ttl * 1000)
        while not self.resigned and (
            renewed is None or DEFECT == "works-on" or time.monotonic() < until
        ):
            asked = time.monotonic()
            if renewed is None:
                answer = self.ask("SET", name, identity, "NX", "PX", ms)
            else:
                answer = self.ask("EVAL", _KEEP, 1, name, identity, ms)
            end = asked + ttl * (_PARTS - 1) / _PARTS  # Redis frees an expired key at once
            if answer == ":1" and DEFECT != "works-on":
                renewed(until := end)
            elif answer == "+OK" and time.monotonic() < end:
                until = end
                renewed = started(deadline=None if DEFECT == "works-on" else until)
                self.misbehave(started)
            if DEFECT == "returns":
                return
            time.sleep(ttl / _PARTS)
        if renewed is not None:
            stopped()
            self.ask("EVAL", _DELETE, 1, name, identity)

    def misbehave(self, started):
        if DEFECT == "leads-twice":
            started()
        elif DEFECT == "ends":
            time.sleep(0.05)
            print("Error: out of memory", file=sys.stderr)
            os._exit(3)

    def resign(self):
        self.resigned = True

    def ask(self, *words):
        """Return the first line of a reply, or "" without one. A sound client waits longer than a
        busy machine lets it wait for a processor."""
        if DEFECT == "never-asks":
            return ""
        if DEFECT == "never-elected":
            words = ("GET", words[1])
        parts = "".join(f"${len(str(one))}\r\n{one}\r\n" for one in words)
        try:
            with socket.create_connection(self.server, 2.0) as made:
                made.sendall(f"*{len(words)}\r\n{parts}".encode())
                return made.recv(1000).decode().partition("\r\n")[0]
        except OSError:
            return ""


if DEFECT == "prints":
    os.write(1, b"listening on port 3000\n")
run(Elector)
