"""hashtext: Bob Jenkins' lookup3, as in PostgreSQL's hashfn.c."""

from __future__ import annotations

_M = 0xFFFFFFFF


def _rot(x: int, k: int) -> int:
    return ((x << k) | (x >> (32 - k))) & _M


def hash_bytes(data: bytes, seed: int = 0) -> tuple[int, int]:
    """Return the two halves of the hash, the lower one first."""
    a = b = c = (0x9E3779B9 + len(data) + 3923095) & _M
    if seed:
        a = a + (seed >> 32) & _M
        b = b + (seed & _M) & _M
        a, b, c = _mixed(a, b, c)
    while len(data) >= 12:
        a = a + int.from_bytes(data[:4], "little") & _M
        b = b + int.from_bytes(data[4:8], "little") & _M
        c = c + int.from_bytes(data[8:12], "little") & _M
        a, b, c = _mixed(a, b, c)
        data = data[12:]
    a = a + int.from_bytes(data[:4], "little") & _M
    b = b + int.from_bytes(data[4:8], "little") & _M
    # The lowest byte of c is reserved for the length.
    c = c + (int.from_bytes(data[8:12], "little") << 8) & _M
    return _final(a, b, c)


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    a = (a - c & _M) ^ _rot(c, 4)
    c = c + b & _M
    b = (b - a & _M) ^ _rot(a, 6)
    a = a + c & _M
    c = (c - b & _M) ^ _rot(b, 8)
    b = b + a & _M
    a = (a - c & _M) ^ _rot(c, 16)
    c = c + b & _M
    b = (b - a & _M) ^ _rot(a, 19)
    a = a + c & _M
    c = (c - b & _M) ^ _rot(b, 4)
    b = b + a & _M
    return a, b, c


def _final(a: int, b: int, c: int) -> tuple[int, int]:
    c = (c ^ b) - _rot(b, 14) & _M
    a = (a ^ c) - _rot(c, 11) & _M
    b = (b ^ a) - _rot(a, 25) & _M
    c = (c ^ b) - _rot(b, 16) & _M
    a = (a ^ c) - _rot(c, 4) & _M
    b = (b ^ a) - _rot(a, 14) & _M
    c = (c ^ b) - _rot(b, 24) & _M
    return c, b


def hashtext(words: str) -> int:
    found = hash_bytes(words.encode())[0]
    return found - (1 << 32) if found >> 31 else found


def hashtextextended(words: str, seed: int) -> int:
    low, high = hash_bytes(words.encode(), seed & (1 << 64) - 1)
    found = high << 32 | low
    return found - (1 << 64) if found >> 63 else found
