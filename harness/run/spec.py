"""The description of a test: everything that is needed to run it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from fencepost import times
from fencepost.checker.checkers import CHECKERS
from fencepost.harness.db.kinds import chosen
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.run.early_stop import ANY, check_until
from fencepost.harness.run.results import must_name_a_folder
from fencepost.nemesis.asked import families
from fencepost.nemesis.families import check
from fencepost.nemesis.restart import NEVER_S
from fencepost.nemesis.targets import Layout
from fencepost.settings import SETTINGS, Settings
from fencepost.workloads import critical_section
from fencepost.workloads.locks.locktype import LockType
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.guards.guard import served
from fencepost.workloads.resources.registry import GUARDS
from fencepost.workloads.scenarios.scenario import Scenario

# The most of what may be set of the clients' generator.
_WORK = {"think_ms": 3_600_000, "pause_ms": 3_600_000, "extend": 1}


@dataclass(frozen=True)
class Spec(Settings):
    """One test: its settings, and what follows from them for nodes and checkers."""

    @property
    def lock_type(self) -> LockType:
        return LOCKS[self.lock]

    @property
    def servers(self) -> list[str]:
        return [f"{self.lock_type.kind}-{n + 1}" for n in range(self.lock_type.servers)]

    @property
    def stored_in(self) -> str:
        """The store of the resource: the one that was set, or the guard's first."""
        return self.store or GUARDS[self.guard].stores[0]

    @property
    def locked(self) -> list[tuple[str, str]]:
        """Every lock that the clients acquire, with the resource that it protects."""
        return critical_section.Settings(locks=self.locks).pairs()

    @property
    def clients(self) -> list[str]:
        return [f"client-{n + 1}" for n in range(self.concurrency)]

    @property
    def families(self) -> list[str]:
        """The families of its faults, those of a schedule and of a scenario too."""
        return [*families(self.nemesis), *((self.scenario or {}).get("families") or ())]

    @property
    def checkers(self) -> dict[str, str | None]:
        """Every checker by name: None, or the reason why it has nothing to check here."""
        test = self._described()
        return {name: checker.applies(test) for name, checker in CHECKERS.items()}

    def to_json(self) -> dict[str, Any]:
        """The spec as in test.json: the lock with its options, each setting by its name, and what
        follows from them. `store` is the one in use, even if none was set."""
        return self._described() | {
            "checkers": [name for name, why in self.checkers.items() if why is None],
            "not_checked": {name: why for name, why in self.checkers.items() if why},
        }

    def _described(self) -> dict[str, Any]:
        """All of `to_json` but the checkers, which depend on the rest."""
        used = replace(self, store=self.stored_in)
        return {
            "name": self.name,
            "lock": {
                "name": self.lock,
                "options": dict(self.options),
                "ends_with": self.lock_type.ends_with,
                "token": self.lock_type.has_token(self.options),
            },
            **{name: getattr(used, name) for name in SETTINGS},
            "scheduled": self.scheduled,
            "scenario": self.scenario,
            "servers": self.servers,
            "clients": self.clients,
            "promises": dict(self.lock_type.promises),
        }


def stored(test: Mapping[str, Any]) -> Spec:
    """The spec that a run's test.json describes.

    Raises:
        BadArguments: it is a scenario's, or this version cannot run it.
    """
    if test.get("scenario"):
        raise BadArguments("a scenario's faults are its schedule: run its suite again instead")
    described = dict(test)
    if "until" not in test and test.get("until_violation"):
        described["until"] = (ANY,)  # as older versions stored it
    if "etcd" in test and "server" not in test:  # as older versions stored it
        described["server"] = {"etcd": test["etcd"]}
    try:
        lock = msgspec.convert(test.get("lock"), _Lock)
        described |= {"lock": lock.name, "options": _options(lock)}
        spec = msgspec.convert(described, Spec)
    except msgspec.ValidationError as error:
        raise BadArguments(f"its test.json does not describe a test: {error}") from error
    return validate(spec)


class _Lock(msgspec.Struct):
    """The part of a test.json that says which lock was tested."""

    name: str
    options: dict[str, bool | int | str]


def _options(lock: _Lock) -> dict[str, Any]:
    """A stored lock's options, each of a value that the lock could have been given."""
    written = {name: str(value) for name, value in lock.options.items()}
    try:
        return LOCKS[choose("lock", lock.name, LOCKS)].read_options(written)
    except ValueError as error:
        raise BadArguments(str(error)) from error


def scripted(name: str, lock: str, scenario: Scenario, seed: int, **changed: Any) -> Spec:
    """The spec of a scenario, on the lock that it names, or else on this one."""
    lock = scenario.lock or lock
    settings: dict[str, Any] = {
        "guard": scenario.guard,
        "concurrency": scenario.clients,
        "ttl_ms": scenario.ttl_ms,
        **scenario.settings,
    }
    return Spec(
        name=name,
        lock=lock,
        options=LOCKS[lock].read_options({}) | dict(scenario.options),
        time_s=0,
        seed=seed,
        scenario=scenario.to_json(),
        **settings | changed,
    )


def seconds(what: str, text: str) -> float:
    """A time like 500ms, 60s, 2m or 60 in seconds.

    Raises:
        BadArguments: it is no time, or not above zero.
    """
    try:
        return times.seconds(text)
    except ValueError as error:
        raise BadArguments(f"{what} {error}") from error


def layout_of(spec: Spec) -> Layout:
    """The nodes of a test as its faults see them."""
    lock, role = spec.lock_type, spec.lock_type.kind
    kind, _ = chosen(role, spec.server.get(role, ""))
    ttl_s = spec.ttl_ms / 1000
    shown = dict.fromkeys(spec.servers, tuple(kind.clocks)) | dict.fromkeys(spec.clients, ("wall",))
    return Layout(
        spec.servers,
        spec.clients,
        ttl_s,
        _restart_s(spec, ttl_s),
        kind=role,
        leads=kind.elects or lock.replicated,
        replicated=lock.replicated,
        shown=shown,
    )


def _restart_s(spec: Spec, ttl_s: float) -> float:
    match spec.restart:
        case "at-once":
            return 0.0
        case "after-ttl":
            return ttl_s * 1.1
        case "never":
            return NEVER_S
    return seconds("restart", spec.restart)


def validate(spec: Spec) -> Spec:
    """Return the spec if it makes sense.

    Raises:
        BadArguments: naming the setting that is wrong, and what is valid.
    """
    must_name_a_folder(spec.name)
    choose("lock", spec.lock, LOCKS)
    choose("guard", spec.guard, GUARDS)
    for name, version in spec.server.items():
        chosen(name, version)
    try:
        for setting in SETTINGS.values():
            setting.check(getattr(spec, setting.name))
    except ValueError as error:
        raise BadArguments(str(error)) from error
    _must_work(spec.work)
    if _restart_s(spec, 0) > NEVER_S:
        raise BadArguments(f"restart {spec.restart} is out of range (up to {NEVER_S / 3600:.0f} h)")
    if spec.shared and not spec.lock_type.shared:
        modes = [lock.name for lock in LOCKS.values() if lock.shared]
        raise BadArguments(
            f"{spec.lock} has no shared mode; these have: {', '.join(modes) or 'none'}"
        )
    lock = spec.lock_type
    if spec.ttl_ms < lock.least_ttl_ms:
        raise BadArguments(
            f"TTL {spec.ttl_ms} ms is too short: the servers of {lock.name} give no lease or "
            f"session below {lock.least_ttl_ms} ms"
        )
    if lock.whole_seconds and spec.ttl_ms % 1000:
        raise BadArguments(
            f"TTL {spec.ttl_ms} ms cannot be given: the leases of {lock.name} are whole seconds, "
            "2s say"
        )
    # Redlock asks every server in turn; a client of a cluster asks one.
    servers = spec.lock_type.servers if spec.lock_type.kind == "redis" else 1
    timeouts_ms = spec.options.get("node_timeout_ms", 0) * servers
    if timeouts_ms >= spec.ttl_ms:
        raise BadArguments(
            f"node_timeout_ms {spec.options['node_timeout_ms']} on {servers} "
            f"server(s) can use up the whole TTL of {spec.ttl_ms} ms: it must be far below it"
        )
    _guarded(spec)
    check_until(spec.until, spec.checkers)
    try:
        check(spec.nemesis, layout_of(spec))
    except ValueError as error:
        raise BadArguments(str(error)) from error
    return spec


def _must_work(work: Mapping[str, float]) -> None:
    """Raise BadArguments if a setting of the clients' generator is not one, or makes no sense."""
    for name, value in work.items():
        most = _WORK[choose("setting of work", name, _WORK)]
        if not isinstance(value, int | float) or not 0 <= value <= most:
            raise BadArguments(f"work {name} {value!r} is out of range (0 to {most})")


def _guarded(spec: Spec) -> None:
    """Raise BadArguments if the guard cannot work with this lock's tokens, or with the store."""
    guard, lock = GUARDS[spec.guard], spec.lock_type
    if not guard.serves(lock, spec.options):
        raise BadArguments(
            f"guard {guard.name} needs {guard.needs.what}, and {lock.name} gives none as it is "
            f"set. These do: {', '.join(served(guard, LOCKS.values()))}"
        )
    if spec.store and spec.store not in guard.stores:
        raise BadArguments(
            f"guard {guard.name} cannot be kept in store {spec.store!r}; choose one of: "
            f"{', '.join(guard.stores)}"
        )
    if lock.program and spec.stored_in != "redis":
        raise BadArguments(
            f"the client of {lock.name} writes to a store in redis, not in {spec.stored_in}: "
            "leave --store out"
        )
