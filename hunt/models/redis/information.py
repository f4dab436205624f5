"""INFO, CONFIG, and the lists of clients of a Redis server.

Fields without a model, such as those of memory, have constant values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fencepost.hunt.models.redis.arguments import SYNTAX, CommandError, integer
from fencepost.hunt.models.redis.globs import matches
from fencepost.hunt.models.redis.notices import OPTION
from fencepost.hunt.models.redis.session import VERSION, Session
from fencepost.hunt.sim.unknown import Unknown

_DEFAULT = ("server", "clients", "memory", "persistence", "stats", "replication", "cpu", "modules",
            "errorstats", "cluster", "keyspace")  # fmt: skip
_TYPES = ("normal", "master", "replica", "slave", "pubsub")


def info(wanted: Sequence[str], sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the sections that INFO names; without names, those of the default."""
    names: dict[str, None] = {}
    for word in [one.lower() for one in wanted] or ["default"]:
        names.update(
            dict.fromkeys(_DEFAULT if word in ("default", "all", "everything") else [word])
        )
    parts = []
    for name in [one for one in (*_DEFAULT, "commandstats", "latencystats") if one in names]:
        lines = [f"{field}:{value}\r\n" for field, value in sections.get(name, {}).items()]
        parts.append(f"# {_titled(name)}\r\n" + "".join(lines))
    return "\r\n".join(parts)


def _titled(name: str) -> str:
    return {"cpu": "CPU", "commandstats": "Commandstats"}.get(name, name.capitalize())


def fixed(index: int, port: int) -> dict[str, dict[str, Any]]:
    """Return the fields of INFO that do not change, by section."""
    return {
        "server": {
            "redis_version": VERSION, "redis_git_sha1": "00000000", "redis_git_dirty": 0,
            "redis_build_id": "0", "redis_mode": "standalone", "os": "Linux x86_64",
            "arch_bits": 64, "monotonic_clock": "POSIX clock_gettime", "process_id": 1,
            "run_id": f"{index + 1:040x}", "tcp_port": port, "hz": 10, "configured_hz": 10,
        },
        "memory": {
            "used_memory": 1_000_000, "used_memory_human": "976.56K", "maxmemory": 0,
            "maxmemory_human": "0B", "maxmemory_policy": "noeviction",
        },
        "cpu": {"used_cpu_sys": "0.000000", "used_cpu_user": "0.000000"},
        "cluster": {"cluster_enabled": 0},
    }  # fmt: skip


def clients(args: list[str], sessions: Iterator[tuple[Session, str]], now_ms: int) -> str:
    """Execute CLIENT LIST on connections with the addresses of their clients."""
    found = _chosen(args, [*sessions])
    return "".join(_line(one, address, now_ms) for one, address in found)


def _chosen(args: list[str], found: list[tuple[Session, str]]) -> list[tuple[Session, str]]:
    if not args:
        return found
    word, *rest = args
    if word.upper() == "TYPE" and len(rest) == 1:
        if rest[0].lower() not in _TYPES:
            raise CommandError(f"ERR Unknown client type '{rest[0]}'")
        return [one for one in found if _type(one[0]) == rest[0].lower()]
    if word.upper() == "ID" and rest:
        try:
            numbers = [integer(one) for one in rest]
        except CommandError:
            raise CommandError("ERR Invalid client ID") from None
        by_number = {one[0].number: one for one in found}
        return [by_number[one] for one in numbers if one in by_number]
    raise CommandError(SYNTAX)


def _type(one: Session) -> str:
    return "pubsub" if one.channels or one.patterns else "normal"


def _line(one: Session, address: str, now_ms: int) -> str:
    flags = "P" if one.channels or one.patterns else ""
    flags += "x" if one.queued is not None else ""
    fields = {
        "id": one.number, "addr": address, "laddr": "127.0.0.1:6379", "fd": 8,
        "name": one.name, "age": (now_ms - one.made_ms) // 1000,
        "idle": (now_ms - one.seen_ms) // 1000, "flags": flags or "N", "db": 0,
        "sub": len(one.channels), "psub": len(one.patterns), "ssub": 0,
        "multi": -1 if one.queued is None else len(one.queued), "qbuf": 0, "qbuf-free": 0,
        "argv-mem": 0, "multi-mem": 0, "rbs": 1024, "rbp": 0, "obl": 0, "oll": 0, "omem": 0,
        "tot-mem": 22272, "events": "r", "cmd": one.last, "user": "default", "redir": -1,
        "resp": one.version,
    }  # fmt: skip
    return " ".join(f"{name}={value}" for name, value in fields.items()) + "\n"


def to_kill(
    args: list[str], asking: Session, found: list[tuple[Session, str]]
) -> tuple[list[Session], bool]:
    """Return the connections that CLIENT KILL ends, and whether it names the address alone."""
    if len(args) == 1:
        chosen = [one for one, address in found if address == args[0]]
        if not chosen:
            raise CommandError("ERR No such client")
        return chosen[:1], True
    if len(args) % 2:
        raise CommandError(SYNTAX)
    chosen, skips = [one for one, _ in found], True
    for word, value in zip(args[::2], args[1::2], strict=True):
        match word.upper():
            case "ID":
                number = _number(value)
                chosen = [one for one in chosen if one.number == number]
            case "TYPE":
                if value.lower() not in _TYPES:
                    raise CommandError(f"ERR Unknown client type '{value}'")
                chosen = [one for one in chosen if _type(one) == value.lower()]
            case "ADDR":
                there = [one for one, address in found if address == value]
                chosen = [one for one in chosen if one in there]
            case "USER":
                if value != "default":
                    raise CommandError(f"ERR No such user '{value}'")
            case "SKIPME" if value.lower() in ("yes", "no"):
                skips = value.lower() == "yes"
            case "LADDR":
                raise Unknown("the model of Redis has no option LADDR of CLIENT KILL")
            case _:
                raise CommandError(SYNTAX)
    return [one for one in chosen if not (skips and one is asking)], False


def _number(text: str) -> int:
    try:
        return integer(text)
    except CommandError:
        raise CommandError("ERR client-id should be greater than 0") from None


class Settings:
    """CONFIG GET and SET of the settings that the model has."""

    def __init__(self, appendonly: str, fsync: str) -> None:
        self._fixed = {"appendonly": appendonly, "appendfsync": fsync, "databases": "16",
                       "maxmemory": "0", "maxmemory-policy": "noeviction", "timeout": "0",
                       "save": ""}  # fmt: skip

    def get(self, patterns: Sequence[str], notices: str) -> dict[str, str]:
        known = {**self._fixed, OPTION: notices}
        for pattern in patterns:
            if not any(matches(pattern.lower(), one) for one in known) or "*" in pattern:
                raise Unknown(f"the model of Redis has no setting {pattern} in CONFIG GET")
        return {
            name: value
            for name, value in known.items()
            if any(matches(one.lower(), name) for one in patterns)
        }
