"""Hunts user locks at the defaults of `fencepost hunt`, and stores the results:
`make bench-own-locks`.

Twenty locks of the catalogue with one defect each, and six sound ones, all on one Redis server. A
row is right if the hunt calls a broken lock's counterexample the lock's own, and no sound lock's.
Prints a line for each, and stores the table of docs/hunt.md in docs/measured/own-locks.json.
Exits with 1 if a sound lock was called broken.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fencepost import processors
from fencepost.atomic_write import replace
from fencepost.harness.hunting import hunts
from fencepost.workloads.contract.catalogue import LOCK, TWIN, catalogue

KEPT = Path(__file__).parents[1] / "docs" / "measured" / "own-locks.json"
BROKEN = (
    "release-check-then-delete", "release-clock-in-wrong-unit", "release-does-nothing",
    "release-owner-is-a-constant", "release-retried-blindly", "release-trusts-own-clock",
    "release-without-owner-check", "lease-counted-from-the-answer", "lease-ends-early",
    "lease-in-whole-seconds", "lease-none", "lease-set-in-a-second-request",
    "renewal-blocked-by-the-work", "renewal-check-then-expire", "renewal-goes-on-after-release",
    "renewal-recreates-the-key", "renewal-without-owner-check", "answer-noscript",
    "answer-timeout-is-a-no", "answer-timeout-is-a-yes",
)  # fmt: skip
SOUND = (
    "release-check-then-delete", "release-without-owner-check", "release-forgets-before-it-asks",
    "renewal-check-then-expire", "renewal-goes-on-after-release", "answer-of-an-earlier-request",
)  # fmt: skip


def hunted(name: str, cls: str, seed: int, budget: str, processes: int) -> dict[str, Any]:
    """Hunt a class of the catalogue as `fencepost hunt FILE:CLASS --servers redis:1` does, with the
    promises that the catalogue names."""
    listed = catalogue()[name]
    promises = listed.defect.promises
    asked = hunts.described(
        listed.lock(cls), {}, {"seed": seed}, servers="redis:1", promises=promises, budget=budget
    )
    tried, find = asked.carry_out(processes)
    inherent = [one.words for one in tried.inherent]
    told = "nothing"
    if find is not None and find.compared is not None:
        told = "inherent" if find.compared.inherent else "yours"
        inherent += [find.compared.words] if find.compared.inherent else []
    return {
        "lock": name, "sound": cls == TWIN, "told": told, "inherent": inherent,
        "broken": list(find.broken) if told == "yours" and find is not None else [],
        "schedules": tried.schedules, "seconds": round(tried.seconds, 1),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--processes", type=int, default=processors.count())
    parser.add_argument("--only", default="", help="names that have this in it; stores nothing")
    given = parser.parse_args()
    asked = [(name, LOCK) for name in BROKEN] + [(name, TWIN) for name in SOUND]
    rows = []
    for name, cls in asked:
        if given.only in name:
            row = hunted(name, cls, given.seed, given.budget, given.processes)
            rows.append(row)
            print(f"{name:32} {cls:6} {row['told']:9} {', '.join(row['broken']) or '-':17} "
                  f"{row['schedules']:>7,} schedules {row['seconds']:>5} s; "
                  f"inherent: {'; '.join(row['inherent']) or 'none'}", flush=True)  # fmt: skip
    if not given.only:
        lines = ",\n".join(json.dumps(row) for row in rows)
        replace(KEPT, [f"[\n{lines}\n]\n".encode()])
    return int(any(row["sound"] and row["told"] == "yours" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
