"""A token that a client reads once, and uses for all its grants."""

from _counted import Counted as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    kept = None

    def token(self, name, counted):
        self.kept = self.kept or counted
        return self.kept


DEFECT = Defect(
    name="token-kept-from-the-last-grant",
    family="tokens",
    what="A client keeps the token of its first grant for later ones.",
    seen="Kibana, pull request 220476: an expired lock that is acquired again keeps its old token",
    breaks="No two grants have the same token.",
    checker="fencing",
    also=("linearizable",),
)
