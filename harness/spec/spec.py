"""The description of a test: everything that is needed to run it again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fencepost import ranges, times
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.jobs import NO_JOBS
from fencepost.checker.leadership import NO_ELECTOR
from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.external_names import Foreign
from fencepost.harness.servers.external_names import read as read_named
from fencepost.harness.servers.kinds import KINDS, chosen
from fencepost.harness.spec.models import counts_steps
from fencepost.harness.userlock.user_lock import UserLock
from fencepost.nemesis.failpoints import COUNTED, EXTENDING, REQUESTS
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.fault_spec import families, parse
from fencepost.nemesis.restart import NEVER_S
from fencepost.nemesis.schedule import Scheduled, draw
from fencepost.nemesis.targets import Layout, UnknownKind
from fencepost.nemesis.triggers import Trigger
from fencepost.node.kind import Survives
from fencepost.settings import SETTINGS, Settings
from fencepost.workloads.client import critical_section
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, keepers


@dataclass(frozen=True)
class Spec(Settings):
    """A test: its settings, and their consequences for nodes and checkers.

    `own` is its lock, if that is in no registry; `lock` is then only its name. `plays` are the
    triggers of a stored run with `--aim`, to be replayed.
    """

    own: UserLock | None = None
    plays: tuple[Trigger, ...] = ()

    @property
    def lock_type(self) -> LockType:
        if self.own is not None:
            return self.own.lock_type(self.lock, self.options)
        return LOCKS[self.lock]

    @property
    def foreign(self) -> Foreign | None:
        """Its external servers in containers, if it has any."""
        named = self.services or self.containers
        return read_named(named, self.lock_type.kind, self.compose) if named else None

    @property
    def servers(self) -> list[str]:
        if self.foreign is not None:
            return [one.node for one in self.foreign.servers]
        return [f"{self.lock_type.kind}-{n + 1}" for n in range(self.lock_type.servers)]

    @property
    def server_version(self) -> str:
        """The version or the kind of its servers: the chosen one, or the one that the lock needs;
        "": any."""
        return self.server.get(self.lock_type.kind, "") or self.lock_type.server

    @property
    def stored_in(self) -> str:
        """The store of the resource: the chosen one, or the first that can keep the guard."""
        return self.store or next(iter(keepers(GUARDS[self.guard])), "")

    @property
    def locked(self) -> list[tuple[str, str]]:
        """Every lock that the clients acquire, with the resource that it protects."""
        names = self.lock_name, self.resource_name
        return critical_section.Settings(*names, locks=self.locks).pairs()

    @property
    def lock_name(self) -> str:
        """The name of the lock on the servers: another one in each segment of a long run."""
        return self._own(critical_section.Settings.lock)

    @property
    def resource_name(self) -> str:
        return self._own(critical_section.Settings.resource)

    def _own(self, name: str) -> str:
        # No name is a prefix of another: etcd searches by prefix.
        return f"{name}.{self.segment:04d}" if self.segment else name

    @property
    def clients(self) -> list[str]:
        return [f"client-{n + 1}" for n in range(self.concurrency)]

    @property
    def families(self) -> list[str]:
        """The families of its faults, including those of a schedule or a scenario."""
        return [*families(self.nemesis), *((self.scenario or {}).get("families") or ())]

    @property
    def checkers(self) -> dict[str, str | None]:
        """Every checker by name: None, or the reason why it has nothing to check here."""
        test = self._described()
        return {name: checker.applies(test) for name, checker in CHECKERS.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the spec as in test.json: the lock with its options, each setting by its name, and
        what follows from them. `store` is the one in use, even if none was set."""
        return self._described() | {
            "checkers": [name for name, why in self.checkers.items() if why is None],
            "not_checked": {
                name: why
                for name, why in self.checkers.items()
                if why and why not in (NO_ELECTOR, NO_JOBS)
            },
        }

    def _described(self) -> dict[str, Any]:
        """Everything in `to_json` but the checkers, which depend on the rest."""
        used = replace(self, store=self.stored_in)
        return {
            "name": self.name,
            "lock": {
                "name": self.lock,
                "options": dict(self.options),
                "ends_with": self.lock_type.ends_with,
                "token": self.lock_type.has_token(self.options),
                **({"elector": True} if self.lock_type.elector else {}),
                **({"drives_work": True} if self.lock_type.drives_work else {}),
                **({"own": self.own.to_json()} if self.own else {}),
            },
            **{name: getattr(used, name) for name in SETTINGS},
            "scheduled": self.scheduled,
            "scenario": self.scenario,
            "servers": self.servers,
            "clients": self.clients,
            "promises": self.lock_type.promises_with(self.options),
            **({"lockless": True} if GUARDS[self.guard].lockless else {}),
            **({"lower_only": True} if GUARDS[self.guard].lower_only else {}),
            **({"segment": self.segment} if self.segment else {}),
        }


def seconds(what: str, text: str) -> float:
    """Parse a duration like 500ms, 60s, 2m or 60 into seconds.

    Raises:
        BadArguments: it is not a duration, or not above zero.
    """
    try:
        return times.seconds(text)
    except ValueError as error:
        raise BadArguments(f"{what} {error}") from error


def layout_of(
    spec: Spec,
    known: Mapping[str, ForeignServer] | None = None,
    lacks: Collection[str] = (),
) -> Layout:
    """Return the nodes of a test as its faults see them. `known`: its external servers, once they
    have been inspected. `lacks`: variants of faults that its nodes cannot have."""
    lock, role = spec.lock_type, spec.lock_type.kind
    kind = spec.foreign.kind if spec.foreign else chosen(role, spec.server_version)[0]
    ttl_s = spec.ttl_ms / 1000
    clocks = tuple(kind.clocks) if kind else ()
    shown = dict.fromkeys(spec.servers, clocks) | dict.fromkeys(spec.clients, ("wall",))
    if known is not None:
        shown |= {node: one.shown_clocks for node, one in known.items()}
    return Layout(
        spec.servers,
        spec.clients,
        ttl_s,
        restart_s(spec, ttl_s),
        kind=kind or UnknownKind(),
        leads=bool(kind and kind.elects) or lock.replicated,
        # Where the servers elect a primary, the harness promotes none.
        replicated=lock.replicated and not (kind and kind.elects),
        loses=bool(kind and kind.loses),
        shown=shown,
        foreign=spec.foreign is not None,
        mortal=tuple(node for node, one in (known or {}).items() if one.mortal),
        failpoints=lock.failpoints or (_requests(lock) if counts_requests(spec) else ()),
        renews=lock.renews_with(spec.options),
        bound_s=spec.liveness_bound_s,
        time_s=spec.time_s,
        cancels=not lock.program,
        lacks=frozenset(lacks),
    )


def _requests(lock: LockType) -> tuple[str, ...]:
    """Return the failpoints at requests that clients of this lock may reach."""
    return tuple(point for point in REQUESTS if lock.extends or point not in EXTENDING)


def counts_requests(spec: Spec) -> bool:
    """Return whether clients count their lock's requests, so that each is a failpoint: for --aim,
    for faults that name such a failpoint or draw one, and for a stored schedule, which may."""
    lock = spec.lock_type
    counted = bool(spec.own.python) if spec.own else counts_steps(lock.kind) and not lock.program
    if not counted or lock.failpoints:
        return False
    asked = list(map(parse, spec.nemesis))
    points = {FAMILIES[one.family].points for one in asked if one.family in FAMILIES}
    named = "always" in points or any(one.variant in COUNTED for one in asked)
    aimed = spec.aim and "aimed" in points
    return named or aimed or spec.scheduled


def schedule_of(spec: Spec, lacks: Collection[str] = ()) -> list[Scheduled]:
    """Return the faults of a timed run, drawn from its seed; none if they wait for a trigger.
    `lacks`: as for layout_of."""
    if spec.aim:
        return []
    return draw(spec.nemesis, spec.seed, spec.time_s, spec.interval_s, layout_of(spec, lacks=lacks))


def survives(spec: Spec) -> Survives | None:
    """Return the worst event that the servers' data survive; None if their kind has no choice of
    persistence."""
    role = spec.lock_type.kind
    kind = chosen(role, spec.server_version)[0] if role in KINDS else None
    return kind.persistence.get(spec.persistence) if kind else None


def restart_s(spec: Spec, ttl_s: float) -> float:
    match spec.restart:
        case "at-once":
            return 0.0
        case "after-ttl":
            return ttl_s * 1.1
        case "never":
            return NEVER_S
    return seconds("restart", spec.restart)


def work_of(spec: Spec) -> dict[str, Any]:
    """Return the clients' work, as their generator takes it (workloads/client/critical_section.py).

    Raises:
        BadArguments: naming the invalid setting.
    """
    found: dict[str, Any] = dict(spec.work)
    for name, read, of in (
        ("hold", ranges.lengths, spec.ttl_ms),
        ("think", ranges.lengths, spec.ttl_ms),
        ("contention", ranges.clients, spec.concurrency),
    ):
        try:
            found[name] = read(getattr(spec, name), of)
        except ValueError as error:
            raise BadArguments(f"{name} {error}") from error
    found |= {"hold_ms": found.pop("hold"), "think_ms": found.pop("think")}
    return found
