"""A token that is a time in seconds, of which several grants have the same."""

import time

from _counted import Counted as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def token(self, name, counted):
        return int(time.time())


DEFECT = Defect(
    name="token-in-whole-seconds",
    family="tokens",
    what="The token is a time in seconds, so that two grants within one have the same.",
    seen="mlflow, review of pull request 25199, on a lease that its time in ms identifies",
    breaks="No two grants have the same token.",
    checker="fencing",
    also=("linearizable",),
)
