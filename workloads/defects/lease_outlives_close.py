"""A client that is closed, and leaves its lock to expire."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def close(self):
        """Close the connection, and forget the locks that it may still hold."""
        self.client.close()


DEFECT = Defect(
    name="lease-outlives-close",
    family="lease",
    what="Closing a client does not release the locks that it holds.",
    seen="by construction",
    breaks="Nothing that a lease promises: it ends by itself.",
    checker="",
    hidden="The lock is back within its lease, as after the death of its client. A lock that "
    "promises more says so by --ends-with close, after which an earlier grant is no violation; "
    "a later one is none either.",
    twin=False,
)
