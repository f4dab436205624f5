"""schedule.json of a counterexample of real clients: written with it, and read by `--replay`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from fencepost import plainfile
from fencepost.atomic_write import replace
from fencepost.harness.errors import BadArguments
from fencepost.hunt.sim.schedule import Schedule

_MOST = 1_000_000


class Stored(msgspec.Struct):
    """`hunt`: the command that found it. `broken`: the checkers. `schedule`: the integers."""

    hunt: str
    broken: list[str]
    schedule: list[int]


def write(path: Path, hunt: str, broken: Sequence[str], numbers: Sequence[int]) -> None:
    stored = Stored(hunt, list(broken), list(numbers))
    replace(path, [msgspec.json.encode(stored) + b"\n"])


def read(path: Path, clients: int) -> Schedule:
    """Return the schedule in a file.

    Raises:
        BadArguments: the file is not such a schedule.
    """
    try:
        numbers = msgspec.json.decode(plainfile.read(path), type=Stored).schedule
    except OSError as error:
        raise BadArguments(f"--replay {path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadArguments(
            f"--replay {path} is no schedule of real clients: {error}. Name the schedule.json in "
            "the folder of a counterexample of `fencepost hunt` with real clients"
        ) from error
    if any(not 0 <= number < _MOST for number in numbers):
        raise BadArguments(f"--replay {path}: a number is out of range (0 to {_MOST - 1:,})")
    return Schedule.of(numbers, clients)
