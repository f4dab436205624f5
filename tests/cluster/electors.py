"""A sound elector on etcd's gateway, for tests on real servers, and a twin that never stops."""

import base64
import json
import threading
import time
from http.client import HTTPConnection, HTTPException

BEATS = 8
"""Attempts to renew, or to be elected, in each lease."""


class Sound:
    """A key of a lease. Its deadline is counted from before the request that keeps the lease."""

    def __init__(self, servers):
        self.servers = servers
        self.resigned = threading.Event()

    def run(self, name, identity, ttl, started, stopped):
        self.name, self.identity, self.ttl, self.lease = name, identity, ttl, None
        until, token = self.campaign()
        if until is None:
            return
        renewed = self.told(started, token, until)
        while not self.resigned.wait(self.ttl / BEATS):
            later = self.keep()
            if later is not None:
                until = later
                renewed(until)
            elif self.given_up(until):
                break
        stopped()
        self.ask("/v3/lease/revoke", {"ID": self.lease})

    def told(self, started, token, until):
        return started(token=token, deadline=until)

    def given_up(self, until):
        """Return whether it stops after a failed renewal."""
        return time.monotonic() >= until

    def resign(self):
        self.resigned.set()

    def campaign(self):
        """Return until when it leads, once it does, and its token."""
        until = 0.0
        while not self.resigned.is_set():
            later = self.keep() if self.lease else self.granted()
            if later is None and time.monotonic() >= until:
                self.lease = None
            until = later or until
            if self.lease and time.monotonic() < until:
                token = self.created()
                if token and time.monotonic() < until:
                    return until, token
            self.resigned.wait(self.ttl / BEATS)
        return None, None

    def granted(self):
        begun = time.monotonic()
        answer = self.ask("/v3/lease/grant", {"TTL": round(self.ttl)})
        if answer is None or "ID" not in answer:
            return None
        self.lease = answer["ID"]
        return begun + self.ttl

    def keep(self):
        begun = time.monotonic()
        answer = self.ask("/v3/lease/keepalive", {"ID": self.lease})
        kept = answer is not None and int(answer.get("result", {}).get("TTL", 0)) > 0
        return begun + self.ttl if kept else None

    def created(self):
        """Create the key, if there is none; return the revision of it that is ours, or None."""
        key = coded(self.name)
        put = {"requestPut": {"key": key, "value": coded(self.identity), "lease": self.lease}}
        asked = {
            "compare": [{"key": key, "target": "CREATE", "createRevision": "0"}],
            "success": [put],
            "failure": [{"requestRange": {"key": key}}],
        }
        answer = self.ask("/v3/kv/txn", asked)
        if answer is None:
            return None
        if answer.get("succeeded"):
            return int(answer["header"]["revision"])
        for one in answer["responses"][0]["response_range"].get("kvs", ()):
            if one["value"] == coded(self.identity) and one.get("lease") == self.lease:
                return int(one["create_revision"])
        return None

    def ask(self, path, body):
        """Return a server's answer; None without one."""
        for host, port in self.servers:
            connection = HTTPConnection(host, port, timeout=self.ttl / BEATS / 2)
            try:
                connection.request("POST", path, json.dumps(body))
                answer = connection.getresponse()
                if answer.status == 200:
                    return json.loads(answer.read())
            except (OSError, HTTPException):
                continue
            finally:
                connection.close()
        return None


def coded(text):
    return base64.b64encode(text.encode()).decode()


class NeverStops(Sound):
    """It names no deadline, and works on when it cannot renew its lease."""

    def told(self, started, token, until):
        started(token=token)
        return lambda later: None

    def given_up(self, until):
        return False


class StartsTwice(Sound):
    def told(self, started, token, until):
        started(token=token)
        return started(token=token)


class ByTheClock:
    """Leads in its slots of the kernel's clock, which all nodes of one engine share. Two candidates
    lead at once for a while at each change. Its token is that clock (ns) as it calls `started`."""

    slot_s, too_long_s = 1.0, 0.3

    def __init__(self, servers):
        self.resigned = threading.Event()

    def run(self, name, identity, ttl, started, stopped):
        client = int(identity.partition(".")[0].rpartition("-")[2])
        slot = int(time.monotonic() // self.slot_s) + 1
        slot += (slot + client) % 2
        if self.resigned.wait(slot * self.slot_s - time.monotonic()):
            return
        started(token=time.monotonic_ns())
        until = (slot + 1) * self.slot_s + self.too_long_s
        self.resigned.wait(max(0.0, until - time.monotonic()))
        stopped()

    def resign(self):
        self.resigned.set()
