"""A majority lock on servers that forget their keys when they crash."""

from _majority import Majority as Lock

from fencepost.workloads.contract.defect import Defect

DEFECT = Defect(
    name="quorum-server-forgets",
    family="quorum",
    what="A server restarts empty at once and grants a key whose lease still runs.",
    seen="M. Kleppmann, How to do distributed locking, 2016; Redis' documentation of Redlock",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    servers="redis:3",
    faults=("kill", "partition"),
    twin=False,
)
