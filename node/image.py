"""The vDSO of a process: its address, its bytes, and the begins of its functions."""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass


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


def functions(content: bytes) -> dict[str, int]:
    """Return the begin of each of the vDSO's functions, from its dynamic symbols (ELF-64)."""
    (sections_at,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", content, sections_at + n * size) for n in range(count)
    ]
    found = {}
    for _, kind, _, _, at, length, link, *_ in sections:
        if kind != 11:  # SHT_DYNSYM
            continue
        names = content[sections[link][4] :]
        for symbol in range(at, at + length, 24):
            name, info, _, _, value, _ = struct.unpack_from("<IBBHQQ", content, symbol)
            if info & 15 == 2:  # a function
                found[names[name : names.index(b"\0", name)].decode()] = value
    return found
