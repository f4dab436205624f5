"""A lock on one Redis server, over a socket of its own. The first argument names its defect."""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import sys

import fencepost_sdk
from fencepost_sdk import run

DEFECT = sys.argv[1]
TIMEOUT_S = 0.1 if DEFECT == "no-owner-check" else 20.0
"""Others wait longer than a busy machine lets them wait for a processor."""
_KEPT = {}
_DELETE = (
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
)


class Lock:
    def __init__(self, servers):
        self.server = ("127.0.0.1", 1) if DEFECT == "elsewhere" else servers[0]
        if DEFECT == "keeps-address":
            self.server = _KEPT.setdefault("server", self.server)
        self.socket = None

    def acquire(self, name, ttl):
        return self.waited_for(name, ttl) if DEFECT == "waits" else self.asked_for(name, ttl)

    def waited_for(self, name, ttl):
        """Ask again after each notice of a release, which comes on another connection."""
        with socket.create_connection(self.server, 2 * ttl) as notices:
            notices.sendall(f"SUBSCRIBE free:{name}\r\n".encode())
            heard = b""
            while b"subscribe" not in heard:
                heard += notices.recv(1000)
            while not (got := self.asked_for(name, ttl)):
                while b"released" not in heard:
                    more = notices.recv(1000)
                    if not more:
                        return False
                    heard += more
                heard = b""
            return got

    def asked_for(self, name, ttl):
        self.secret = secrets.token_hex(8)
        ttl = 30 if DEFECT == "ignores-lease" else ttl
        granted = self.call("SET", name, self.secret, "NX", "PX", int(ttl * 1000)) == "OK"
        if DEFECT == "none-with-tokens" and granted:
            return fencepost_sdk.Grant(token=self.call("INCR", f"token:{name}"))
        return granted

    def release(self, name):
        if DEFECT == "no-owner-check":
            return self.call("DEL", name) == 1
        if DEFECT == "waits":
            self.call("DEL", name)
            return self.call("PUBLISH", f"free:{name}", "released") >= 0
        return self.call("EVAL", _DELETE, 1, name, self.secret) == 1

    def call(self, *words):
        if self.socket is None:
            self.socket = socket.create_connection(self.server, TIMEOUT_S)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if DEFECT == "tls":
                self.socket = ssl._create_unverified_context().wrap_socket(self.socket)
        parts = "".join(f"${len(str(one))}\r\n{one}\r\n" for one in words)
        try:
            self.socket.sendall(f"*{len(words)}\r\n{parts}".encode())
            answer = self.socket.recv(1000).decode()
            if not answer:
                raise ConnectionResetError
        except OSError:
            self.close()
            raise
        return int(answer[1:]) if answer[0] == ":" else answer[1:].strip()

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None


if DEFECT == "version-1":
    fencepost_sdk.VERSIONS = (1,)
if DEFECT == "ends":
    print("Error: no configuration", file=sys.stderr)
    sys.exit(3)
if DEFECT == "prints":
    os.write(1, b"listening on port 3000\n")
run(Lock, ["true_refusals"] if DEFECT == "none-with-tokens" else None)
