"""Random steps of several sessions, for dialogues with ZooKeeper."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from kazoo.protocol import serialization as jute
from kazoo.security import ACL, Id

CONNECTIONS = 3
CONTAINER = 4
_SET_WATCHES, _CHECK_WATCHES, _REMOVE_WATCHES = 101, 17, 18
ANYONE = ACL(31, Id("world", "anyone"))
ACLS = (
    [ANYONE], [ANYONE], [ANYONE], [ACL(1, Id("world", "anyone"))], [ACL(31, Id("auth", ""))],
    [ACL(15, Id("world", "anyone")), ACL(31, Id("digest", "a:fXDDH+yK6BIIZ7DdpFqaYu2wZOQ="))],
    [ACL(31, Id("digest", "no colon"))], [], [ACL(31, Id("unknown", "x"))], [ANYONE, ANYONE],
)  # fmt: skip
NAMES = ("a", "b", "c", "a/x", "a/y", "b/x", "a/x/1", "long-name", "é")
ODD = ("a/", "a//x", "a/../b", "./a", "a\x01", "")
Step = list[Any]


class Container(jute.Create2):  # type: ignore[misc]  # kazoo has no types
    """Creates a container, which kazoo cannot."""

    type = 19


class Ttl(jute.Create2):  # type: ignore[misc]
    """Creates a znode with a TTL of a second."""

    type = 21

    def serialize(self) -> bytes:
        return bytes(super().serialize()) + struct.pack(">q", 1000)


class Draw(Random):
    """Draws paths below one folder. `containers`: it draws containers, too."""

    folder = "/d"
    containers = True


def drawn(seed: int, count: int, folder: str = "/d", containers: bool = True) -> list[Step]:
    """Draw a dialogue about a folder. Each step is a list that JSON can have."""
    random = Draw(seed)
    random.folder, random.containers = folder, containers
    steps: list[Step] = [["open", number] for number in range(CONNECTIONS)]
    steps.append(["request", 0, *packed(jute.Create(folder, b"", [ANYONE], 0))])
    steps += [_step(random) for _ in range(count)]
    return steps


def _step(random: Draw) -> Step:
    number = random.randrange(CONNECTIONS)
    if random.random() < 0.06:
        what = random.choice(("close", "drop", "again", "again", "wrong", "later", "over"))
        return [what, number, random.randrange(CONNECTIONS)]
    return ["request", number, *packed(_request(random))]


def packed(request: Any) -> tuple[int, str]:
    """Return the type of a request, and its record in hexadecimal digits."""
    if isinstance(request, tuple) and not hasattr(request, "serialize"):
        type, record = request
        return type, bytes(record).hex()
    return request.type, bytes(request.serialize()).hex()


def _path(random: Draw) -> str:
    if random.random() < 0.04:
        return f"{random.folder}/{random.choice(ODD)}"
    if random.random() < 0.03:
        return random.choice(("/nowhere/x", "d", random.folder))
    return f"{random.folder}/{random.choice(NAMES)}"


def _data(random: Draw) -> bytes | None:
    return random.choice((b"", b"1", b"\xff\x00", b"more data", None))


def _version(random: Draw) -> int:
    return random.choice((-1, -1, -1, 0, 1, 2, 7, -5))


def _create(random: Draw) -> Any:
    flags = random.choice(
        (0, 0, 1, 1, 2, 3, 3, 3, 4, 5, 6, 7, -1) if random.random() < 0.2 else (0, 1, 2, 3)
    )
    acls = random.choice(ACLS) if random.random() < 0.15 else [ANYONE]
    kind = jute.Create2 if random.random() < 0.3 else jute.Create
    path = _path(random)
    if not path.startswith(f"{random.folder}/"):
        flags &= 1  # a real server has its own number of znodes there
    elif random.containers and random.random() < 0.2:
        kind, flags = Container, CONTAINER
    elif random.random() < 0.03:
        kind, flags = Ttl, random.choice((5, 6))
    return kind(path, _data(random), acls, flags)


def _delete(random: Draw) -> Any:
    special = random.choice(("/", "/zookeeper", "/zookeeper/quota"))
    return jute.Delete(special if random.random() < 0.02 else _path(random), _version(random))


def _set(random: Draw) -> Any:
    return jute.SetData(_path(random), _data(random), _version(random))


def _multi(random: Draw) -> Any:
    draws = (_create, _delete, _set, lambda one: jute.CheckVersion(_path(one), _version(one)))
    return jute.Transaction([random.choice(draws)(random) for _ in range(random.randrange(5))])


def _request(random: Draw) -> Any:
    watched = random.random() < 0.5
    match random.randrange(17):
        case 0 | 1 | 2 | 3:
            return _create(random)
        case 4 | 5:
            return _delete(random)
        case 6:
            return _set(random)
        case 7:
            return jute.GetData(_path(random), watched)
        case 8:
            return jute.Exists(_path(random), watched)
        case 9:
            kind = random.choice((jute.GetChildren, jute.GetChildren2))
            folders = (random.folder, f"{random.folder}/a", f"{random.folder}/b", _path(random))
            return kind(random.choice(folders), watched)
        case 10 | 11:
            return _multi(random)
        case 12:
            return random.choice((jute.GetACL(_path(random)), jute.Sync(_path(random))))
        case 13:
            if random.random() < 0.5:
                return jute.SetACL(_path(random), random.choice(ACLS), _version(random))
            return _set_watches(random)
        case 14 if random.random() < 0.3:
            return jute.Auth(0, "digest", random.choice(("a:b", "c:d", "no colon")))
        case 16:
            type = random.choice((_CHECK_WATCHES, _REMOVE_WATCHES))
            of = random.choice((1, 2, 3, 3, 0) if random.random() < 0.2 else (1, 2, 3))
            return type, jute.write_string(_path(random)) + struct.pack(">i", of)
    return jute.GetData(_path(random), watched)


def _set_watches(random: Draw) -> tuple[int, bytearray]:
    """Set watches again, as a client does that has connected to another server; of now, or long
    ago."""
    lists = [[_path(random) for _ in range(random.randrange(3))] for _ in range(3)]
    record = bytearray(struct.pack(">q", random.choice((0, 1 << 62))))
    for paths in lists:
        record += struct.pack(">i", len(paths))
        for path in paths:
            record += jute.write_string(path)
    return _SET_WATCHES, record
