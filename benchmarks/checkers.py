"""Measures each history checker's time for a run, and its growth: for a run four times as long.

A checker that compares every pair takes sixteen times as long. Prints a table; exits with 1 if one
takes more than ten times as long.

    python benchmarks/checkers.py
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from fencepost.checker.checker import Run  # noqa: E402
from fencepost.checker.checkers import CHECKERS  # noqa: E402
from fencepost.checker.history.history import History, Op  # noqa: E402

TURNS = 5_000
LONGER = 4
BOUND = 10.0
MS = 1_000_000
CLIENTS = 10
TEST = {
    "servers": ["s1", "s2", "s3"],
    "promises": {"fifo": True, "minority": True},
    "lock": {"ends_with": "close"},
    "clocks": {f"client-{n}": {"offset_ns": 0, "bound_ns": MS // 100} for n in range(CLIENTS)},
}


def turns(many: int) -> Iterator[tuple[int, int, str, str, dict[str, Any]]]:
    """Clients that wait for one lock and write under it, in turn; some disappear silently."""
    process = list(range(CLIENTS))
    for n in range(many):
        client, at = n % CLIENTS, n * 10 * MS
        me, hold = process[client], f"h{n}"
        lock = {"lock": "orders", "ttl": 1000 * MS}
        yield at - 5 * MS, me, "invoke", "acquire", lock
        granted = lock | {"hold": hold, "token": n + 1, "deadline": at + 900 * MS}
        yield at + MS, me, "ok", "acquire", granted
        asked = {"resource": "account", "value": f"v{n}", "version": n, "hold": hold}
        asked["token"] = n + 1
        yield at + 2 * MS, me, "invoke", "write", asked
        if n % 50 == 49:
            yield at + 3 * MS, me, "info", "write", asked
            yield at + 3 * MS + 1, me, "invoke", "close", {}
            yield at + 4 * MS, me, "ok", "close", {}
            process[client] += CLIENTS
            continue
        yield at + 3 * MS, me, "ok", "write", asked | {"stored": n + 1}
        yield at + 4 * MS, me, "invoke", "release", {"lock": "orders", "hold": hold}
        yield at + 5 * MS, me, "ok", "release", {"lock": "orders", "hold": hold}


def history(many: int) -> History:
    rows = sorted(turns(many), key=lambda row: row[0])
    return History(
        [
            Op(i, time_ns, me, type, f, value, None, f"client-{me % CLIENTS}")  # type: ignore[arg-type]
            for i, (time_ns, me, type, f, value) in enumerate(rows)
        ]
    )


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    short, long = history(TURNS), history(LONGER * TURNS)
    print(f"{'checker':18}{len(short):>10} ops{len(long):>10} ops{'ratio':>8}")
    bad = 0
    for name, checker in CHECKERS.items():
        took = []
        for one in (short, long):
            begun = time.process_time()
            checker.check(Run(one, TEST))
            took.append(time.process_time() - begun)
        ratio = took[1] / took[0]
        bad += ratio > BOUND
        print(f"{name:18}{took[0]:>12.2f} s{took[1]:>12.2f} s{ratio:>8.1f}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
