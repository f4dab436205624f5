"""`fencepost doctor`: checks whether this machine can run tests."""

from __future__ import annotations

from fencepost.harness.cluster import machine
from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.results import results

_WORD = {True: "ok", False: "lacks", None: "-"}


def doctor() -> int:
    """Print each check with its remedy; return exit code 1 if no run can work."""
    table = screen.table("", "", "", whole=1)
    found = list(machine.findings(results.root()))
    for one in found:
        table.add_row(_WORD[one.ok], one.what, one.how)
    screen.console().print(table)
    lacking = sum(one.ok is False for one in found)
    screen.write("This machine can run tests." if not lacking else f"{lacking} to fix first.")
    return EXIT[not lacking]
