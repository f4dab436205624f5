"""Electors as a user may write them, for hunts on the model of Kubernetes.

`Sound` keeps its promise: each of its requests has a timeout, and it leads no longer than its lease
certainly runs. The others have one defect each.
"""

import asyncio
import json
import time
from http.client import HTTPConnection, HTTPException

BEATS = 8
"""Attempts to renew, or to be elected, in each lease."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Sound:
    """Elects a leader by a Lease, whose resourceVersion admits one writer of each version."""

    spare = 0.0
    """The part of a lease that a leader leaves unused."""

    def __init__(self, servers):
        self.servers = servers
        self.resigned = False

    def run(self, name, identity, ttl, started, stopped):
        self.name, self.identity, self.ttl = name, identity, ttl
        until = self.campaign()
        if until is None:
            return
        renewed = started(deadline=until)
        while not self.resigned and time.monotonic() < until:
            time.sleep(ttl / BEATS)
            lease, later = self.renew()
            if lease is not None and holder(lease) != identity:
                break
            if later is not None:
                until = later
                renewed(until)
        stopped()
        if self.resigned:
            self.hand_over()

    def resign(self):
        self.resigned = True

    def campaign(self):
        """Return until when it leads, once it does. A lease has expired once it has kept its
        version for its duration."""
        version, since = "", 0.0
        while not self.resigned:
            begun = time.monotonic()
            found, lease = self.read()
            if found and (lease is None or not holder(lease)):
                until = self.write(lease, self.identity, begun)
            elif found and lease["metadata"]["resourceVersion"] != version:
                version, until = lease["metadata"]["resourceVersion"], None
                since = time.monotonic()
            elif found and begun - since > self.ttl:
                until = self.write(lease, self.identity, begun)
            else:
                until = None
            if until is not None and time.monotonic() < until:
                return until
            time.sleep(self.ttl / BEATS)
        return None

    def renew(self):
        """Return the lease, if it could be read, and its new deadline, if it could be written."""
        begun = time.monotonic()
        found, lease = self.read()
        if not found or lease is None or holder(lease) != self.identity:
            return lease, None
        return lease, self.write(lease, self.identity, begun)

    def hand_over(self):
        found, lease = self.read()
        if found and lease is not None and holder(lease) == self.identity:
            self.write(lease, "", time.monotonic())

    def read(self):
        """Return whether the server answered, and the lease, if there is one."""
        status, lease = self.ask("GET", f"/{self.name}")
        return status in (200, 404), lease if status == 200 else None

    def write(self, lease, identity, begun):
        """Return the deadline of the written lease, or None if it may not have been written."""
        made = lease or {"metadata": {"name": self.name}}
        made["spec"] = {
            "holderIdentity": identity,
            "leaseDurationSeconds": round(self.ttl),
            "leaseTransitions": (made.get("spec") or {}).get("leaseTransitions", 0) + 1,
        }
        way = ("PUT", f"/{self.name}") if lease else ("POST", "")
        status, _ = self.ask(*way, made)
        return begun + self.ttl * (1 - self.spare) if status in (200, 201) else None

    def ask(self, method, path, body=None):
        """Return the status of an answer, 0 without one, and its content."""
        connection = HTTPConnection(*self.servers[0], timeout=self.timeout_s())
        try:
            content = None if body is None else json.dumps(body)
            connection.request(
                method, f"{LEASES}{path}", content, {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, HTTPException):
            return 0, None
        finally:
            connection.close()

    def timeout_s(self):
        return self.ttl / BEATS


def holder(lease):
    return lease["spec"].get("holderIdentity")


class Watches(Sound):
    """A candidate watches the lease of another one, and reads it again once it has heard of a
    change, or of nothing for the whole lease."""

    def campaign(self):
        while not self.resigned:
            begun = time.monotonic()
            found, lease = self.read()
            free = found and (lease is None or not holder(lease))
            if not free and lease is not None:
                free = self.is_silent(lease["metadata"]["resourceVersion"])
                begun = time.monotonic()
            until = self.write(lease, self.identity, begun) if free else None
            if until is not None and time.monotonic() < until:
                return until
            time.sleep(self.ttl / BEATS)
        return None

    def is_silent(self, version):
        """Return whether a watch from this version on has no event for the whole lease."""
        connection = HTTPConnection(*self.servers[0], timeout=self.ttl)
        query = f"watch=true&resourceVersion={version}&fieldSelector=metadata.name%3D{self.name}"
        try:
            connection.request("GET", f"{LEASES}?{query}")
            return not connection.getresponse().readline()
        except TimeoutError:
            return True
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


class Told(Sound):
    """Sound, but names no deadline: it calls `stopped` early enough, unless it is paused."""

    spare = 0.5

    def run(self, name, identity, ttl, started, stopped):
        def started_only(deadline):
            started()
            return lambda later: None

        super().run(name, identity, ttl, started_only, stopped)


class Hangs(Told):
    """Its requests have no timeout, so it does not notice the end of its lease."""

    def timeout_s(self):
        return None


class Denies(Sound):
    """It says that it does not lead, whatever it knows."""

    def is_leader(self):
        return False


class StartsTwice(Sound):
    def run(self, name, identity, ttl, started, stopped):
        started()
        started()


class StopsFirst(Sound):
    def run(self, name, identity, ttl, started, stopped):
        stopped()


class Returns(Sound):
    def run(self, name, identity, ttl, started, stopped):
        started()


class CallsWrongly(Sound):
    def run(self, name, identity, ttl, started, stopped):
        started("first", "second", "third")


class NamesTheWallClock(Sound):
    def run(self, name, identity, ttl, started, stopped):
        started(deadline=time.time() + ttl)


class Raises(Sound):
    """Raises once it leads, as a library does whose connection is reset."""

    def run(self, name, identity, ttl, started, stopped):
        self.name, self.identity, self.ttl = name, identity, ttl
        if self.campaign() is not None:
            started()
            time.sleep(ttl / 2)
            raise RuntimeError("no connection")


class RaisesAtOnce(Sound):
    def run(self, name, identity, ttl, started, stopped):
        raise RuntimeError("no connection")


class ReturnsAtOnce(Sound):
    def run(self, name, identity, ttl, started, stopped):
        pass


class Exits(Sound):
    def run(self, name, identity, ttl, started, stopped):
        raise SystemExit("lease_duration must be greater than renew_deadline")


class Async(Sound):
    """Sound, and its run is a coroutine function: requests block, waits do not."""

    async def run(self, name, identity, ttl, started, stopped):
        self.name, self.identity, self.ttl = name, identity, ttl
        until = self.campaign()
        if until is None:
            return
        renewed = started(deadline=until)
        while not self.resigned and time.monotonic() < until:
            await asyncio.sleep(ttl / BEATS)
            lease, later = self.renew()
            if lease is not None and holder(lease) != identity:
                break
            if later is not None:
                until = later
                renewed(until)
        stopped()
        if self.resigned:
            self.hand_over()


class AsyncHangs(Async):
    """It names no deadline, and its requests have no timeout."""

    async def run(self, name, identity, ttl, started, stopped):
        def started_only(deadline):
            started()
            return lambda later: None

        await super().run(name, identity, ttl, started_only, stopped)

    def timeout_s(self):
        return None
