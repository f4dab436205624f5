"""Runs Redis' Lua scripts with a real Lua 5.1 (lupa) against the model's commands.

Values are converted between Lua and Redis as in Redis ("Scripting with Lua"): numbers lose their
fractions, false becomes nil, a table is an array up to its first nil. Strings are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha1
from typing import Any

from fencepost.hunt.models.redis.arguments import CommandError, database
from fencepost.hunt.models.redis.chance import Chance
from fencepost.hunt.models.redis.commands import (
    OF_THE_CONNECTION,
    OF_THE_SERVER,
    OOM,
    WRITES,
    check,
    execute,
)
from fencepost.hunt.models.redis.lists import BLOCKS
from fencepost.hunt.models.redis.replies import OK, Status, double
from fencepost.hunt.models.redis.sandbox import PRELUDE
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.sim.network import Refusal
from fencepost.hunt.sim.unknown import Unknown

_NOT_IN_SCRIPTS = (BLOCKS | OF_THE_SERVER.keys() | OF_THE_CONNECTION.keys()) - {"SELECT"}
_LACKING = frozenset({"PUBLISH", "PUBSUB", "INFO"})
"""Commands that Redis allows in scripts, at least some of them, and the model does not."""


@dataclass
class Machine:
    """The data of a server, the random numbers of its scripts, and its PUBLISH."""

    store: Store
    chance: Chance = field(default_factory=Chance)
    publish: Callable[[str, str], int] | None = None


class _Lua:
    """The Lua interpreter of this process; `machine` belongs to the running script. `lacking`: the
    script needs something that the model lacks, even if it catches the error."""

    def __init__(self) -> None:
        from lupa import lua51

        self.machine = Machine(Store())
        self.wrote = False
        self.lacking: Unknown | None = None
        self._lupa = lua51
        self._lua = lua51.LuaRuntime(unpack_returned_tuples=True, encoding=None)
        prelude = self._lua.eval(b"loadstring")(PRELUDE, b"@prelude")
        functions = self._call, self._fraction, self._seed, self._sha1, self._words
        getinfo = self._lua.eval(b"debug.getinfo")
        self._compile, self._run = prelude(*functions, self._lacks, getinfo)
        self._scripts: dict[str, Any] = {}

    def script(self, body: str) -> Any:
        """Compile a script. Raises CommandError if it is not Lua."""
        if body.startswith("#!"):
            raise Unknown("a script has a line of flags (#!lua), which the model of Redis lacks")
        if body not in self._scripts:
            made = self._compile(_bytes(body))
            if isinstance(made, tuple):
                raise CommandError(f"ERR Error compiling script (new function): {_text(made[1])}")
            self._scripts[body] = made
        return self._scripts[body]

    def run(self, body: str, keys: Sequence[str], args: Sequence[str]) -> Any:
        script = self.script(body)
        self.wrote, self.lacking = False, None
        ok, *found = _tuple(self._run(script, self._table(keys), self._table(args)))
        if self.lacking is not None:
            raise self.lacking
        value = found[0] if found else None
        if not ok:
            raise CommandError(self._failure(value, body))
        return self.from_lua(value)

    def _failure(self, why: Any, body: str) -> str:
        """Return Redis' words for an error that a script did not catch."""
        if not isinstance(why[b"err"], bytes):
            raise Unknown("a script raises a table without err, which crashes Redis 7.0")
        words, name = _text(why[b"err"]), sha1(_bytes(body)).hexdigest()
        source, line = why[b"source"], why[b"line"]
        return f"{words} script: {name}" + (f", on {_text(source)}:{line}." if source else ".")

    def _table(self, items: Sequence[str]) -> Any:
        return self._lua.table_from([_bytes(one) for one in items])

    # The functions of scripts.

    def _call(self, *args: Any) -> Any:
        if not args:
            raise CommandError("ERR Please specify at least one argument for this redis lib call")
        name, *rest = [_argument(one) for one in args]
        name = name.upper()
        try:
            return self._to_lua(self._execute(name, rest))
        except Unknown as error:
            self.lacking = error
            raise

    def _execute(self, name: str, args: list[str]) -> Any:
        store = self.machine.store
        full, store.full = store.full, store.full and not self.wrote
        try:
            reply = _checked(self.machine, name, args)
        except CommandError as error:
            # A script that has begun to write may continue (script.c, scriptVerifyOOM).
            self.wrote = self.wrote or (name in WRITES and str(error) != OOM)
            raise
        finally:
            store.full = full
        self.wrote = self.wrote or name in WRITES
        return reply

    def _fraction(self) -> float:
        return self.machine.chance.fraction()

    def _seed(self, number: float) -> None:
        self.machine.chance.seed(int(number))

    def _sha1(self, *words: Any) -> bytes:
        if len(words) != 1:
            raise CommandError("ERR wrong number of arguments")
        return sha1(_bytes(_argument(words[0]))).hexdigest().encode()

    def _words(self, why: Any) -> bytes | None:
        """Return the words of an error that a function above raised."""
        return _bytes(str(why)) if isinstance(why, Exception) else None

    def _lacks(self, name: bytes) -> None:
        self.lacking = Unknown(f"a script uses {_text(name)}, which the model of Redis lacks")
        raise self.lacking

    # Values.

    def _to_lua(self, reply: Any) -> Any:
        if reply is None:
            return False
        if isinstance(reply, list):
            return self._lua.table_from([self._to_lua(one) for one in reply])
        if isinstance(reply, Status):
            return self._lua.table_from({b"ok": _bytes(reply)})
        return _bytes(reply) if isinstance(reply, str) else reply

    def from_lua(self, value: Any) -> Any:
        if value is None or value is False:
            return None
        if isinstance(value, bytes):
            return _text(value)
        if isinstance(value, int | float):  # true is 1
            # As in C on x86, a number out of range becomes the least integer.
            return int(value) if -(2**63) <= value < 2**63 else -(2**63)
        if self._lupa.lua_type(value) != "table":
            return None
        return self._from_table(value)

    def _from_table(self, value: Any) -> Any:
        if isinstance(value[b"err"], bytes):
            return Refusal(_text(value[b"err"]))
        if isinstance(value[b"ok"], bytes):
            return Status(_text(value[b"ok"]))
        if isinstance(value[b"double"], int | float):
            return double(value[b"double"])
        for name in (b"map", b"set", b"big_number", b"verbatim_string"):
            if value[name] is not None:
                raise Unknown(f"a script returns a {_text(name)}, which the model of Redis lacks")
        found, place = [], 1
        while (one := value[place]) is not None:
            found.append(self.from_lua(one))
            place += 1
        return found


def _checked(machine: Machine, name: str, args: list[str]) -> Any:
    store = machine.store
    try:
        check(store, name, args)
    except CommandError as error:
        raise CommandError(_in_script(str(error))) from None
    if name == "SELECT":
        database(args[0])
        return OK
    if name == "PUBLISH" and machine.publish is not None:
        return machine.publish(*args)
    if name in _LACKING:
        raise Unknown(f"the model of Redis has no command {name} in scripts")
    if name in _NOT_IN_SCRIPTS:
        raise CommandError("ERR This Redis command is not allowed from script")
    return execute(store, name, args)


def _in_script(words: str) -> str:
    """Return Redis' words for an error of a command that a script calls."""
    if words.startswith("ERR wrong number of arguments"):
        return "ERR Wrong number of args calling Redis command from script"
    if words.startswith("ERR unknown subcommand"):
        return "ERR Unknown Redis command called from script"
    return words


def _argument(value: Any) -> str:
    """Convert an argument of redis.call; numbers as Lua passes them to Redis (%.17g)."""
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CommandError("ERR Lua redis lib command arguments must be strings or integers")
    return f"{float(value):.17g}"


def _tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


@cache
def _lua() -> _Lua:
    return _Lua()


def compiled(body: str) -> None:
    """Raise CommandError if a script is not Lua."""
    _lua().script(body)


def evaluate(machine: Machine, body: str, keys: Sequence[str], args: Sequence[str]) -> Any:
    """Run a script; return its reply. Raises CommandError if the script or a command in it
    fails."""
    lua = _lua()
    lua.machine = machine
    return lua.run(body, keys, args)


Evaluate = Callable[[Store, Sequence[str], Sequence[str]], Any]
