"""The vDSO of a process: its address, its bytes, and the begins of its functions."""

from __future__ import annotations

import mmap
import os
import re
import struct
from dataclasses import dataclass

DYNSYM = 11
"""The type of the section with the dynamic symbols (SHT_DYNSYM)."""


class Refused(Exception):
    """The request cannot be carried out here; the text gives the reason."""


@dataclass(frozen=True)
class Image:
    """A vDSO: its address, and its bytes."""

    start: int
    content: bytes


def image(pid: int | str) -> Image:
    """Return the vDSO of a process.

    Raises:
        Refused: it has none, or one for another architecture.
        OSError: the process does not exist, or permission is denied.
    """
    with open(f"/proc/{pid}/maps") as file:
        mapped = re.search(r"^(\w+)-(\w+) .*\[vdso\]$", file.read(), re.MULTILINE)
    if mapped is None:
        raise Refused(f"process {pid} has no vDSO: its clock cannot be reached")
    start, end = int(mapped[1], 16), int(mapped[2], 16)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        content = os.pread(memory.fileno(), end - start, start)
    if content[:6] != b"\x7fELF\x02\x01":
        raise Refused(f"process {pid} is not a 64-bit program: its clock cannot be reached")
    return Image(start, content)


def sections(elf: bytes | mmap.mmap) -> list[tuple[int, ...]]:
    """Return the section headers of an ELF-64 file: name, type, flags, address, offset, size, link,
    and others."""
    (at,) = struct.unpack_from("<Q", elf, 0x28)
    size, count = struct.unpack_from("<HH", elf, 0x3A)
    return [struct.unpack_from("<IIQQQQIIQQ", elf, at + n * size) for n in range(count)]


def functions(content: bytes) -> dict[str, int]:
    """Return the begin of each of the vDSO's functions, from its dynamic symbols (ELF-64)."""
    found = {}
    headers = sections(content)
    for _, kind, _, _, at, length, link, *_ in headers:
        if kind != DYNSYM:
            continue
        names = content[headers[link][4] :]
        for symbol in range(at, at + length, 24):
            name, info, _, _, value, _ = struct.unpack_from("<IBBHQQ", content, symbol)
            if info & 15 == 2:  # a function
                found[names[name : names.index(b"\0", name)].decode()] = value
    return found
