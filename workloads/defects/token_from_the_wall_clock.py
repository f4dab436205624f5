"""A token that is the time of the client's wall clock."""

import time

from _counted import Counted as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def token(self, name, counted):
        return time.time_ns() // 1000


DEFECT = Defect(
    name="token-from-the-wall-clock",
    family="tokens",
    what="The token is a time, and clocks of clients differ and jump back.",
    seen="spinnaker/kork, pull request 150, takes a lock's version from the clock in ms",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable",),
    faults=("clock:client",),
    hunt="it skews the clocks of servers alone",
)
