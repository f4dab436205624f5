"""Finds the slots through which a process calls pthread_cond_timedwait.

The JVM's timed waits (Thread.sleep, Object.wait, a queue's poll) add a time to the clock's reading,
and have the kernel wait until then by the right clock: after a jump ahead by an hour, a sleep of
100 ms would last an hour. A faulty clock would not do that; it is a side effect of this way to skew
it. So the deadlines are corrected on their way to the kernel. Every library has its own slot (of
its global offset table) for the function's address: 8 bytes of data, which are redirected to
fencepost's code.

Slots are found in the file from which a library was mapped; slots that the loader has not filled
yet are left alone.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from functools import lru_cache

from fencepost.node.image import DYNSYM, sections

_NAME = b"pthread_cond_timedwait"
# R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT
_SLOTS = {6, 7, 1025, 1026}
_RELA = 4


def slots(pid: int) -> dict[int, int]:
    """Return the address of each filled slot, and its content."""
    with open(f"/proc/{pid}/maps") as file:
        mapped = re.findall(r"^(\w+)-(\w+) \S+ (\w+) \S+ \d+ +(/.*)$", file.read(), re.MULTILINE)
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    for start, end, offset, path in mapped:
        if int(offset, 16) == 0:
            starts.setdefault(path, int(start, 16))
        ends[path] = int(end, 16)
    found = {}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for path, start in starts.items():
            for offset in _in_file(f"/proc/{pid}/root{path}"):
                try:
                    octets = os.pread(memory.fileno(), 8, start + offset)
                except OSError:
                    continue  # not mapped yet: the loader is at work
                (holds,) = struct.unpack("<Q", octets)
                # Until the loader has filled it, it points back into the library itself.
                if not start <= holds < ends[path]:
                    found[start + offset] = holds
    return found


@lru_cache(maxsize=256)
def _in_file(path: str) -> tuple[int, ...]:
    """Return where in a library its slots are, from its relocations (ELF-64)."""
    try:
        with open(path, "rb") as file:
            if file.read(6) != b"\x7fELF\x02\x01":
                return ()
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as elf:
                return tuple(_relocated(elf))
    except (OSError, ValueError):
        return ()  # deleted since, a device, or empty


def _relocated(elf: mmap.mmap) -> list[int]:
    # Only a program with a fixed address lists it in its relocations; no JVM is one.
    if struct.unpack_from("<H", elf, 16)[0] != 3:  # ET_DYN
        return []
    headers = sections(elf)
    found = []
    for _, kind, _, _, at, length, link, *_ in headers:
        if kind != _RELA or headers[link][1] != DYNSYM:
            continue
        symbols, names = headers[link][4], headers[headers[link][6]][4]
        for offset, info, _ in struct.iter_unpack("<QQq", elf[at : at + length]):
            if info & 0xFFFFFFFF not in _SLOTS:
                continue
            (name,) = struct.unpack_from("<I", elf, symbols + 24 * (info >> 32))
            if elf[names + name : names + name + len(_NAME) + 1] == _NAME + b"\0":
                found.append(offset)
    return found
