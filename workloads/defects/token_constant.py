"""A token that is always the same."""

from _counted import Counted as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def token(self, name, counted):
        return 1


DEFECT = Defect(
    name="token-constant",
    family="tokens",
    what="Every grant carries the same token, such as the version of a row that each "
    "grant inserts again.",
    seen="by construction",
    breaks="No two grants have the same token.",
    checker="fencing",
    also=("linearizable",),
)
