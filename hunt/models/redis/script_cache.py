"""EVAL, EVALSHA and SCRIPT: the scripts that a server knows, until it restarts."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha1
from typing import Any

from fencepost.hunt.models.redis.arguments import CommandError, integer
from fencepost.hunt.models.redis.chance import Chance
from fencepost.hunt.models.redis.commands import text
from fencepost.hunt.models.redis.lua import Machine, compiled, evaluate
from fencepost.hunt.models.redis.replies import OK
from fencepost.hunt.models.redis.scripts import KNOWN
from fencepost.hunt.models.redis.store import Store

# The length of a script's name.
_DIGITS = 40
Publish = Callable[[str, str], int]


class Scripts:
    """The scripts of one server, by the SHA-1 of their text."""

    __slots__ = ("_bodies", "_chance")

    def __init__(self) -> None:
        self._bodies: dict[str, str] = {}
        self._chance = Chance()

    def eval(self, store: Store, args: tuple[Any, ...], publish: Publish) -> Any:
        body = text(args[0])
        if type(args[1]) is int and not store.full and store.listener is None:
            known = KNOWN.get(body)
            if known is not None:
                return known(store, args[2 : 2 + args[1]], _texts(args[2 + args[1] :]))
        keys, rest = _keys_and_rest(args)
        self._known(body)
        return evaluate(Machine(store, self._chance, publish), body, keys, rest)

    def evalsha(self, store: Store, args: tuple[Any, ...], publish: Publish) -> Any:
        name = text(args[0]).lower()
        keys, rest = _keys_and_rest(args) if len(name) == _DIGITS else ([], [])
        body = self._bodies.get(name)
        if body is None:
            raise CommandError("NOSCRIPT No matching script. Please use EVAL.")
        return evaluate(Machine(store, self._chance, publish), body, keys, rest)

    def script(self, store: Store, args: tuple[Any, ...]) -> Any:
        word, *more = _texts(args)
        match word.upper():
            case "LOAD":
                return self._known(more[0])
            case "EXISTS":
                return [int(one.lower() in self._bodies) for one in more]
            case "FLUSH":
                if len(more) > 1 or (more and more[0].upper() not in ("SYNC", "ASYNC")):
                    raise CommandError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
                self._bodies.clear()
                return OK
        raise CommandError("NOTBUSY No scripts in execution right now.")  # KILL

    def _known(self, body: str) -> str:
        """Remember a script; return its name for EVALSHA."""
        name = sha1(body.encode("utf-8", "surrogateescape")).hexdigest()
        if name not in self._bodies:
            compiled(body)
            self._bodies[name] = body
        return name


def _texts(args: tuple[Any, ...]) -> list[str]:
    return [one if type(one) is str else text(one) for one in args]


def _keys_and_rest(args: tuple[Any, ...]) -> tuple[list[str], list[str]]:
    """Return the keys and the other arguments of a script."""
    _, number, *rest = _texts(args)
    count = integer(number)
    if count > len(rest):
        raise CommandError("ERR Number of keys can't be greater than number of args")
    if count < 0:
        raise CommandError("ERR Number of keys can't be negative")
    return rest[:count], rest[count:]
