"""Sets the clocks that a program of a hunt reads, while it runs (hunt/live/clocks.py).

The program's vDSO is replaced once (node/vdso.py). From then on, a write of its table stops its
clocks, or lets them run on from another time. The wall clock goes with the monotonic one.

These clocks are behind the kernel's. A program that adds a time to its clock's reading, and has the
kernel wait until then, would not wait at all: Python's `time.sleep` and `Event.wait` do that, and
Rust's. So only the clocks of runtimes are set that wait for a duration (Node.js, Go), or whose
deadlines the hunt itself brings about (the JVM on x86-64, jvm.py), or corrects on their way to the
kernel (the JVM elsewhere, node/waits.py).
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from contextlib import suppress
from pathlib import Path

from fencepost.harness.hunting import interrupt, jvm
from fencepost.hunt.live.clocks import Waits
from fencepost.hunt.live.rest import Rest
from fencepost.hunt.live.timeouts import Timeouts
from fencepost.node import vdso
from fencepost.node.image import Refused, image, sections
from fencepost.node.patch import CLOCKS, Patch, code_at
from fencepost.node.stubs import ENTRIES, TABLE_SIZE
from fencepost.node.tracing import stopped

_FINE = {5: time.CLOCK_REALTIME, 6: time.CLOCK_MONOTONIC}
"""Clocks of coarse steps, and the ones that show the same more finely."""
_STANDS = -(1 << 32)
"""The rate of a clock that stands still (node/stubs.py)."""
_NODE, _JVM = ("node", "nodejs"), "java"
_GO = b"\xff Go buildinf:"
"""At the begin of a section of each program that Go has built (debug/buildinfo)."""
_TRIES, _AGAIN_S = 3, 0.02
_ROWS = struct.Struct("<" + "qqqQ" * ENTRIES)


class ProgramClocks:
    """The clocks of one process. OSError or Refused if they cannot be set on this machine.

    `jumps`: the ends of its waits follow them. `far_ns`: the monotonic ones are so far ahead that
    no wait of a JVM ends by itself (jvm.py); then it `hurries` between two runs.
    """

    def __init__(self, pid: int, jumps: bool, far_ns: int = 0) -> None:
        self.jumps = jumps
        self.later_ns = far_ns
        self._pid, self.hurries, self._shown = pid, bool(far_ns), (0, 0)
        if far_ns:
            _patch(pid)
        else:
            vdso.skew(pid, {})
        self._table = image(pid).start + code_at(vdso.pristine()) - TABLE_SIZE
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
        self._base_ns = time.monotonic_ns()
        self._ahead = _ahead_ns()
        self._wall_ahead_ns = _ahead_of_monotonic(time.CLOCK_REALTIME)
        if far_ns:
            now_ns = time.monotonic_ns()
            self.run(now_ns, now_ns)

    def stand(self, shown_ns: int) -> None:
        """Stop the clocks; the monotonic one shows this time."""
        self._shown = shown_ns, 0
        self._set(shown_ns, self._base_ns, _STANDS)

    def run(self, shown_ns: int, since_ns: int) -> None:
        """Let the clocks run; at `since_ns` of the real one, the monotonic one showed this time."""
        self._shown = shown_ns, since_ns
        self._set(shown_ns, since_ns, 0)

    def waits(self, rest: Rest) -> Waits:
        """Return the timed waits of the process; `rest` tells whether it is at work."""
        if self.hurries:
            return jvm.Waits(self._pid, self._shown_ns, rest.waits)
        return Timeouts(self._pid, rest.first_alone)

    def _shown_ns(self, wall: bool) -> int:
        """Return the time of the wall clock, or of the monotonic one."""
        shown_ns, since_ns = self._shown
        passed_ns = time.monotonic_ns() - since_ns if since_ns else 0
        return shown_ns + passed_ns + (self._wall_ahead_ns if wall else self.later_ns)

    def _set(self, shown_ns: int, since_ns: int, rate: int) -> None:
        rows, offset_ns = [0] * 4 * ENTRIES, shown_ns - since_ns
        for at, ahead_ns, is_wall in self._ahead:
            more_ns = 0 if is_wall else self.later_ns
            rows[at : at + 3] = since_ns + ahead_ns, offset_ns + more_ns, rate
        with suppress(OSError):  # it has ended
            os.pwrite(self._memory, _ROWS.pack(*rows), self._table)

    def close(self) -> None:
        os.close(self._memory)


def of_program(pid: int) -> ProgramClocks | None:
    """Return the clocks of a process; None if they cannot be set, as on macOS, or if its waits
    would not follow them. A thread that ends at that moment is no reason: it is tried again."""
    for _ in range(_TRIES):
        try:
            program = Path(f"/proc/{pid}/exe")
            if program.readlink().name == _JVM:
                return ProgramClocks(pid, interrupt.CAN, jvm.FAR_NS if interrupt.CAN else 0)
            return ProgramClocks(pid, jumps=True) if may_jump(program) else None
        except (OSError, Refused):
            time.sleep(_AGAIN_S)
    return None


def may_jump(program: Path) -> bool:
    """Return whether the clocks of a program's processes may jump. Raises OSError."""
    name = program.resolve().name
    return name in _NODE or (name == _JVM and interrupt.CAN) or is_of_go(program)


def _patch(pid: int) -> None:
    """Replace the vDSO of a process, and no slots: the deadlines of its waits stay as they are."""
    own, found = vdso.pristine(), image(pid)
    if found.content not in (own, Patch({}).on(own)):
        raise Refused(f"the vDSO of process {pid} was changed by another program")
    pieces = {found.start + at: piece for at, piece in Patch({}).pieces(own).items()}
    with (
        stopped(pid, [(at, at + len(piece)) for at, piece in pieces.items()]),
        open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory,
    ):
        for at, piece in pieces.items():
            os.pwrite(memory.fileno(), piece, at)


def is_of_go(program: Path) -> bool:
    """Return whether Go has built a program."""
    with open(program, "rb") as file:
        if file.read(6) != b"\x7fELF\x02\x01":
            return False
        with (
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as elf,
            suppress(struct.error),  # it is cut short
        ):
            return any(elf[at : at + len(_GO)] == _GO for _, _, _, _, at, *_ in sections(elf))
        return False


def _ahead_ns() -> list[tuple[int, int, bool]]:
    """Return for each clock that is set the place of its row, how far it is ahead of the monotonic
    one, never more than it really is, and whether it is a wall clock."""
    return [
        (4 * id, _ahead_of_monotonic(_FINE.get(id, id)), kind == "wall")
        for kind, ids in CLOCKS.items()
        for id in ids
        if id < ENTRIES
    ]


def _ahead_of_monotonic(id: int) -> int:
    if id == time.CLOCK_MONOTONIC:
        return 0
    shown_ns = time.clock_gettime_ns(id)
    return shown_ns - time.monotonic_ns()
