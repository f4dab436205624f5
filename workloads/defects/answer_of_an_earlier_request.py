"""A connection that is used again after a timeout, and then answers the request before."""

import socket
import uuid

from _lease import RELEASE

import fencepost
from fencepost.workloads.contract.defect import Defect


class Sound:
    def __init__(self, servers):
        self.server = servers[0]
        self.connection = None

    def acquire(self, name, ttl):
        self.owner = uuid.uuid4().hex  # a release that arrives late ends no later hold
        set_it = "SET", name, self.owner, "NX", "PX", int(ttl * 1000)
        return fencepost.Grant() if self.done(b"+OK", *set_it) else False

    def release(self, name):
        return self.done(b":1", "EVAL", RELEASE, 1, name, self.owner)

    def done(self, yes, *command):
        """Return whether the answer is yes. Raise TimeoutError if it is a no that an earlier,
        unanswered try may have caused."""
        for tried in range(5):
            try:
                answer = self.ask(*command)
            except TimeoutError:
                self.timed_out()
                continue
            if answer != yes and tried:
                break
            return answer == yes
        raise TimeoutError("no certain answer")

    def timed_out(self):
        self.close()

    def ask(self, *words):
        if self.connection is None:
            self.connection = socket.create_connection(self.server, timeout=0.3)
            self.answers = self.connection.makefile("rb")
        parts = [str(word).encode() for word in words]
        lines = [b"$%d\r\n%s\r\n" % (len(part), part) for part in parts]
        self.connection.sendall(b"*%d\r\n" % len(parts) + b"".join(lines))
        answer = self.answers.readline()
        if not answer:
            raise ConnectionError("the server closed the connection")
        return answer.rstrip()

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Lock(Sound):
    def timed_out(self):
        # A file object refuses to be read after a timeout; the socket does not.
        self.answers = self.connection.makefile("rb")


DEFECT = Defect(
    name="answer-of-an-earlier-request",
    family="answers",
    what="After a timeout the connection is kept, and the late answer passes for the next one's.",
    seen="redis-py 4.5.1 to 4.5.3, issues 2624 and 2665; aredis, issue 52; coredis, issue 143",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership", "liveness"),
    faults=("pause:one", "delay"),
)
