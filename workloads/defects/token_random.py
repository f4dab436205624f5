"""A token that is random."""

import random

from _counted import Counted as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def token(self, name, counted):
        return random.getrandbits(62)


DEFECT = Defect(
    name="token-random",
    family="tokens",
    what="The owner's random value is used as a token, and has no order.",
    seen="Redlock's random value, of which Kleppmann writes (2016) that it is no fencing token",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable",),
)
