"""`fencepost nemesis`: lists the faults."""

from __future__ import annotations

from fencepost.harness.command import screen
from fencepost.nemesis.families import FAMILIES


def list_families() -> None:
    """List every fault family, with the receipt that proves that a fault took effect."""
    table = screen.table("family", "what it does", "where (:)", "how (/)", "receipt", whole=1)
    for family in FAMILIES.values():
        where = ", ".join((*family.targets, *(["a node"] if family.strikes else [])))
        how = ", ".join(family.variants)
        table.add_row(family.name, family.what, where, how, family.receipt)
    screen.console().print(table)
    screen.write(
        "\n--nemesis FAMILY[:WHERE][/HOW][@INTERVAL][=WEIGHT],...   "
        "partition:primary/reject@10s,pause:client=3,pause:server,clock:redis-3/+1h"
    )


COMMANDS = {"list": list_families}
