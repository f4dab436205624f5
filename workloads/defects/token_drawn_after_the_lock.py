"""A token that is drawn after the lock is granted, when its lease may have expired."""

from _counted import CountedAfter

from fencepost.workloads.contract.defect import Defect


class Sound(CountedAfter):
    timeout_s = 5.0


class Lock(Sound):
    def too_late(self, deadline):
        return False


DEFECT = Defect(
    name="token-drawn-after-the-lock",
    family="tokens",
    what="A client whose lease expired before it drew its token has a higher one than the holder.",
    seen="by construction",
    breaks="A grant is handed out while its lease runs.",
    checker="lease_exclusion",
    also=("linearizable", "fencing"),
    faults=("pause:one",),
)
