"""The bundle of a lock: its constructor, its needs, its promises, its options.

Each lock's file ends with its bundle, and `registry.py` lists the built-in ones:

    LOCK = LockType(name="mine", what="...", make=MyLock, servers=1)

Every command reads all bundles, even if a lock's client library is not installed: see
workloads/transport/deferred.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fencepost.workloads.contract.lock import Env, Lock
from fencepost.workloads.contract.option import Option

Make = Callable[[Env, Sequence[str], Mapping[str, Any]], Lock]
"""Makes a lock from its env, its servers by name, and its options: usually the lock's class."""

PROMISES = {
    "minority": "usable with a minority down",
    "fifo": "grants in order of asking",
    "one_wakeup": "a release wakes one waiter",
    "true_refusals": "refuses only a lock that is held",
    "reentrant": "a process that holds the lock may acquire it again",
}
"""Promises of a lock in addition to exclusion, in words."""

ENDS_WITH = ("lease", "close", "connection")
"""How a grant may end although its lease still runs: see `LockType`."""


@dataclass(frozen=True)
class Reference:
    """How a lock is the reference of user locks on such servers (harness/spec/reference.py).

    `ends_with`: how their grants end. `options` are those of the reference. If servers are
    independent, a lock on one server has a reference on one, and one on several on several.
    """

    ends_with: str = "lease"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LockType:
    """A lock by name. `servers` is how many nodes of `kind` it runs on.

    The worker calls `make` on its node; it is None for a lock with a `program`, the command of an
    external worker. `library` names the library under test, whose environment on the node the
    worker runs in; compose/libraries has its pins. `package` is its name for pip and
    importlib.metadata (or npm), `module` its name in Python; each is the library's own name unless
    given. `port` names our port of its algorithm, which a hunt can simulate if it cannot simulate
    the library. `promises` are some of PROMISES. `least_ttl_ms` is the shortest lease or session
    that the servers give. `extends` and `shared`: whether it has these verbs; `sequencer`: the lock
    service can be asked about a hold; `replicated`: all servers but the first are its replicas;
    `server` names the kind of server that it needs instead of the usual one
    (`--server KIND=SERVER`).

    `ends_with`: how a grant ends: `lease`, a release that reached the service, or time; `close`,
    also its client's `close`, which ends the grant's session; `connection`, also the loss of its
    client, killed or cut off for good.

    `withdraws`: the promises that it does not make with a value of an option ("node=own").

    `failpoints`: the places of its own code at which a client can be stopped (nemesis/pause.py).
    `renews`: whether threads of its client renew leases in the background; or the name of the
    option that decides it; None: unknown.

    `tells_tokens`: whether its options decide if it issues tokens. For a user lock that is unknown
    before it has granted.

    `dials`: it opens its own connections by Python's sockets, though it is no library's lock.

    `usual_ttl_ms`: the lease of a test that names none, if its numbers need a longer one than other
    locks; 0: as for these. `loads`: modules that its library imports at their first use; a hunt
    imports them before its first run. `elector`: it elects a leader (workloads/electors), and a
    grant is a reign; `drives_work`: its library sends the jobs of its leader itself.
    `reference`: how it is the reference of user locks; None: it is not. `sound`: it is not broken
    on purpose; tests of all locks leave other locks out unless named.

    Raises ValueError for an invalid field.
    """

    name: str
    what: str
    make: Make | None
    servers: int
    kind: str = "redis"
    options: Mapping[str, Option] = field(default_factory=dict)
    promises: Mapping[str, bool] = field(default_factory=dict)
    withdraws: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    library: str = ""
    package: str = ""
    module: str = ""
    port: str = ""
    program: tuple[str, ...] = ()
    least_ttl_ms: int = 100
    usual_ttl_ms: int = 0
    whole_seconds: bool = False
    extends: bool = True
    shared: bool = False
    sequencer: bool = False
    replicated: bool = False
    server: str = ""
    ends_with: str = "lease"
    failpoints: tuple[str, ...] = ()
    tells_tokens: bool = True
    renews: bool | str | None = False
    elector: bool = False
    drives_work: bool = False
    loads: tuple[str, ...] = ()
    dials: bool = False
    reference: Reference | None = None
    sound: bool = True

    def __post_init__(self) -> None:
        if self.ends_with not in ENDS_WITH:
            valid = ", ".join(ENDS_WITH)
            raise ValueError(f"lock {self.name}: ends_with {self.ends_with!r} is none of {valid}")
        if unknown := sorted(set(self.promises) - set(PROMISES)):
            valid = ", ".join(PROMISES)
            raise ValueError(f"lock {self.name}: promise {unknown[0]!r} is none of {valid}")
        if (self.make is None) == (not self.program):
            raise ValueError(f"lock {self.name}: give it either `make` or `program`")

    @property
    def distribution(self) -> str:
        """Return the name of the library's package; "" if there is none."""
        return self.package or self.library

    @property
    def imported(self) -> str:
        """Return the name of the library's module; "" if there is none."""
        return self.module or self.library

    def renews_with(self, options: Mapping[str, Any]) -> bool | None:
        """Return whether threads of its client renew leases, with these options; None: unknown."""
        return bool(options.get(self.renews)) if isinstance(self.renews, str) else self.renews

    def promises_with(self, options: Mapping[str, Any]) -> dict[str, bool]:
        """Return its promises with these options."""
        chosen = {f"{name}={value}" for name, value in options.items()}
        gone = [one for value in chosen for one in self.withdraws.get(value, ())]
        return {name: kept for name, kept in self.promises.items() if name not in gone}

    def promised(self) -> list[str]:
        """Return its promises in addition to exclusion, in words."""
        return [words for name, words in PROMISES.items() if self.promises.get(name)]

    def token(self, options: Mapping[str, Any]) -> str:
        """Return the source of its tokens; "none" without tokens."""
        return str(options.get("token", "none"))

    def has_token(self, options: Mapping[str, Any]) -> bool | Literal["unknown"]:
        """Return whether its grants carry tokens; "unknown": not known before it has granted."""
        return self.token(options) != "none" if self.tells_tokens else "unknown"

    def tokens(self) -> list[str]:
        """Return the settings that give tokens."""
        choices = self.options["token"].choices if "token" in self.options else ()
        return [str(choice) for choice in choices if choice != "none"]

    def read_options(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return every option with its value, from text.

        Raises:
            ValueError: an option that the lock does not have, or an invalid value.
        """
        unknown = sorted(set(given) - set(self.options))
        if unknown:
            valid = ", ".join(sorted(self.options)) or "none"
            raise ValueError(f"lock {self.name} has no option {unknown[0]}; it has {valid}")
        return {
            name: option.read(name, given[name]) if name in given else option.default
            for name, option in self.options.items()
        }
