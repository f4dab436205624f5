"""Pass corrupt files to every reader.

    python -m tests.fuzz.run --seconds S [--seed N] [--only NAME]

A file depends on "seed/door/number" alone, so a number reproduces it (`--from N --count 1`).
Memory and time have limits: a reader that exceeds one has a defect. Print a line for each door and
its first defects; exit with 1 if there are any.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom

from tests.fuzz.door import Door
from tests.fuzz.doors import doors
from tests.fuzz.spoil import spoilt

MEMORY = 2 << 30  # bytes of address space, of all files together
A_FILE = 1 << 30  # bytes of writable memory above what there is before a file is read
LONGEST_S = 20  # of processor time
HANGS_S = 300  # of real time, which on a busy machine is much more
SHOWN = 3


@dataclass(frozen=True)
class Defect:
    door: str
    number: int
    what: str

    def __str__(self) -> str:
        return f"{self.door}, number {self.number}: {self.what}"


class _TooLong(BaseException):
    pass


def tried(door: Door, seed: str, number: int) -> Defect | None:
    """Pass the door its file of this number, in a folder of its own."""
    random = Random(f"{seed}/{door.name}/{number}")
    content = spoilt(door.sound, door.shape, random)
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("kept").write_bytes(content)
        signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
        signal.alarm(HANGS_S)
        try:
            with _bounded_memory():
                what = door.hand(content)
        except _TooLong:
            what = (
                f"no end after {LONGEST_S} s of processor time, or {HANGS_S} s: "
                f"{traceback.format_exc()[-1500:]}"
            )
        except BaseException:
            what = traceback.format_exc()[-2000:]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            os.chdir(here)
    return Defect(door.name, number, what) if what else None


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    """Let the block, and the processes that it starts, take up to `A_FILE` more memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = pages * resource.getpagesize() + A_FILE
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def all_of(door: Door, seed: str, first: int, count: int, end: float) -> tuple[int, list[Defect]]:
    """Try as many numbers as the time allows; return their count and their defects."""
    found = []
    done = 0
    for number in range(first, first + count):
        if time.monotonic() > end:
            break
        if defect := tried(door, seed, number):
            found.append(defect)
        done += 1
    return done, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz ARGS=...", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all doors together")
    parser.add_argument("--seed", default=str(SystemRandom().randrange(10**6)))
    parser.add_argument("--only", metavar="NAME", help="doors whose name has this in it")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1 << 40, help="files a door, at most")
    parser.add_argument("--keep", type=Path, help="a folder for the spoilt files of defects")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()

    def too_long(*_: object) -> None:
        raise _TooLong

    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGPROF, too_long)
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    try:
        chosen = [door for door in doors() if (arguments.only or "") in door.name]
        print(f"seed {arguments.seed}", flush=True)
        bad = 0
        for door in chosen:
            end = time.monotonic() + arguments.seconds / len(chosen)
            done, found = all_of(door, arguments.seed, arguments.first, arguments.count, end)
            print(f"{door.name:26}{done:>7} files{len(found):>5} defects", flush=True)
            for defect in found[:SHOWN]:
                print(f"  {defect}\n", flush=True)
            bad += len(found)
            if arguments.keep:
                _keep(door, arguments.seed, found, arguments.keep)
    finally:
        with contextlib.suppress(OSError):
            os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


def _keep(door: Door, seed: str, found: list[Defect], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for defect in found:
        random = Random(f"{seed}/{door.name}/{defect.number}")
        content = spoilt(door.sound, door.shape, random)
        (folder / f"{door.name.replace(' ', '-')}-{defect.number}").write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
