"""A lock for readers and a writer in which two readers that want to write wait for each other."""

from mode_dead_reader_blocks_writers import WHAT, ReadersAndWriter

from fencepost.workloads.contract.defect import Defect
from fencepost.workloads.contract.locktype import LockType

Lock = LockType("upgrading", WHAT, ReadersAndWriter, servers=1, extends=False, shared=True)

DEFECT = Defect(
    name="mode-upgrade-deadlock",
    family="modes",
    what="Two readers that ask for the exclusive mode before they release wait for each other.",
    seen="Curator's InterProcessReadWriteLock forbids the upgrade for this reason",
    breaks="A free lock is granted to a client that waits for it.",
    checker="",
    hidden="A client of fencepost releases before it asks in another mode, so no history has it.",
    shared=True,
    hunt="its clients take no shared holds",
    twin=False,
)
