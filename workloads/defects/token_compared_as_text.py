"""A resource that compares tokens as text, and a lock whose tokens grow by jumps."""

from _counted import Counted

from fencepost.workloads.contract.defect import Defect


class Sound(Counted):
    """All its tokens have ten digits, so that text and numbers have one order."""

    first = 10**9

    def token(self, name, counted):
        return self.first + counted - 1


class Lock(Sound):
    def token(self, name, counted):
        # From 9 to 11, and on: about every ninth token has one digit more. None exceeds 64 bits.
        return int(9 * 1.3 ** (counted - 1)) if counted <= 150 else 2 * 10**18 + counted


DEFECT = Defect(
    name="token-compared-as-text",
    family="tokens",
    what="The resource compares tokens as text, and so accepts 9 after 10.",
    seen="by construction",
    breaks="A resource accepts no lower token after a higher one.",
    checker="fencing",
    also=("linearizable",),
    faults=("pause:client",),
    guard="broken-as-text",
)
