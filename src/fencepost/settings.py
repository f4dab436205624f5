"""The settings of a run, each completely described by one field.

`Settings` is the table. The command line's options, `fencepost.run`, test.json, the report's table
of settings and the command that repeats a test all derive from it, and a scenario's settings are
its fields by name. So a new setting is one field here, and the code where it takes effect.

It is not in the harness, because the report reads it too and imports nothing of the harness. Checks
that depend on a lock, a guard or a cluster are in harness/spec/spec.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from fencepost.setting import (
    CLIENTS,
    FAULTS,
    FILE,
    FLAG,
    LENGTHS,
    NAMES,
    NUMBER,
    PAIRS,
    TIME_MS,
    TIME_S,
    WHOLE,
    Setting,
)


def _set(default: Any, label: str, what: str, *options: str, **more: Any) -> Any:
    """Declare a setting, as in Setting."""
    metadata = {"setting": Setting(label, what, options=options, **more)}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


MOST_CLIENTS, MOST_LOCKS = 10, 100
MOST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Settings:
    """The settings of a run of one lock. Times in s or ms as the names say.

    `options` are the lock's own; `name` is the name of the results folder. `scheduled`: the faults
    were given rather than drawn; `nemesis` then has their families. `scenario` describes the run's
    scenario, if any. `segment` is the number of its segment in a long run, from 1; 0 for a run by
    itself.
    """

    name: str
    lock: str
    options: Mapping[str, Any]
    nemesis: tuple[str, ...] = _set(
        (),
        "Nemesis",
        "Faults to inject: `fencepost nemesis list` lists them",
        "--nemesis",
        "--faults",
        form=FAULTS,
    )
    aim: bool = _set(
        False,
        "Aim",
        "Trigger faults at critical moments: during a hold, at its holder or at the servers "
        "that granted it, or when its lease expires (docs/faults.md)",
        "--aim",
        form=FLAG,
    )
    guard: str = _set(
        "none", "Guard", "Checks of the resource: `fencepost guards` lists them", "--guard"
    )
    store: str = _set(
        "",
        "Store",
        "Backing store of the resource: `fencepost guards` lists the choices",
        "--store",
    )
    shared: float = _set(
        0.0,
        "Shared holds",
        "Fraction of holds taken in shared mode (locks that support it)",
        "--shared",
        form=NUMBER,
        least=0,
        most=1,
    )
    locks: int = _set(
        1,
        "Locks",
        "Number of locks; each guards its own resource, and every client uses all of them",
        "--locks",
        form=WHOLE,
        least=1,
        most=MOST_LOCKS,
    )
    server: Mapping[str, str] = _set(
        {},
        "Servers' versions",
        "Version of the servers of a kind, for example etcd=3.4",
        "--server",
        form=PAIRS,
    )
    services: tuple[str, ...] = _set(
        (),
        "Services",
        "Services of --compose that are the servers, as [KIND=]NAME[:PORT]",
        "--servers",
        form=NAMES,
    )
    compose: str = _set(
        "",
        "Compose file",
        "Compose file of external servers; --servers names its services (docs/your-servers.md)",
        "--compose",
        form=FILE,
    )
    containers: tuple[str, ...] = _set(
        (),
        "Containers",
        "External containers that are the servers, as [KIND=]NAME[:PORT]",
        "--containers",
        form=NAMES,
    )
    time_s: float = _set(
        60.0,
        "Time",
        "Duration of the clients' work",
        "--time",
        "--time-limit",
        form=TIME_S,
        least=1,
        most=86_400,
    )
    segment_s: float = _set(
        600.0,
        "Segment",
        "A longer run is cut into segments of about this length, each with its own lock, "
        "history, verdict and page",
        "--segment",
        form=TIME_S,
        least=5,
        most=3600,
    )
    seed: int = _set(
        0, "Seed", "Random seed", "--seed", form=WHOLE, least=-MOST_SEED, most=MOST_SEED
    )
    concurrency: int = _set(
        5,
        "Clients",
        "Number of clients, one per node",
        "--clients",
        "--concurrency",
        form=WHOLE,
        least=1,
        most=MOST_CLIENTS,
    )
    ttl_ms: int = _set(
        2000, "TTL", "Lease of a grant", "--ttl", form=TIME_MS, least=100, most=600_000
    )
    hold: str = _set(
        "0..1.6ttl",
        "Holds",
        "How long a client holds the lock, for example 20ms or 0.9ttl..1.2ttl; a client that "
        "holds past its lease reports the lock as lost before the lease ends, and releases "
        "late",
        "--hold",
        form=LENGTHS,
    )
    stops: str = _set(
        "exit",
        "Work ends",
        "What ends a leader's work besides the callback: the end of run or the deadline, with its "
        "process (exit), also is_leader() (checked), or nothing else (callback)",
        "--stops",
        choices=("exit", "checked", "callback"),
    )
    after_cancel: str = _set(
        "on",
        "After a cancelled call",
        "A client continues with its lock after a cancelled call, if the lock has coroutines and "
        "no hold (on), or closes it and makes a new one (close)",
        "--after-cancel",
        choices=("on", "close"),
    )
    think: str = _set(
        "0..1ttl",
        "Thinking",
        "How long a client rests between two holds, for example 0..20ms or 0.5ttl",
        "--think",
        form=LENGTHS,
    )
    contention: str = _set(
        "1..all",
        "Contention",
        "Number of clients that ask for locks at a time; it changes every two TTLs",
        "--contention",
        form=CLIENTS,
    )
    interval_s: float = _set(
        5.0,
        "Interval of faults",
        "Average interval between faults of a family",
        "--interval",
        form=TIME_S,
        least=0.01,
        most=86_400,
    )
    persistence: str = _set(
        "none",
        "Persistence",
        "Persistence of Redis' data",
        "--persistence",
        choices=("none", "everysec", "always"),
    )
    restart: str = _set(
        "at-once",
        "Restart",
        "When a killed server is restarted",
        "--restart",
        choices=("at-once", "after-ttl", "never"),
        or_time=True,
    )
    failed_release: str = _set(
        "ended",
        "A failed release means",
        "Effect of a failed release on the hold",
        "--failed-release",
        choices=("ended", "nothing"),
    )
    until: tuple[str, ...] = _set(
        (),
        "Stopped by a violation of",
        "Stop at the first violation found by one of these checkers",
        "--until",
        form=NAMES,
    )
    work: Mapping[str, float] = _set(
        {},
        "Work",
        "Probability that a holder extends its lease (extend), or reads, waits and writes whatever "
        "becomes of its lease (trusting)",
    )
    liveness_bound_s: float = _set(
        5.0,
        "Liveness bound",
        "Time within which a free lock must be granted to a client that asks for it; longer for a "
        "machine that is busy or servers that start slowly",
        "--liveness-bound",
        form=TIME_S,
        least=0,
        most=86_400,
    )
    scheduled: bool = False
    scenario: Mapping[str, Any] | None = None
    segment: int = 0


def _named(one: Field[Any]) -> Setting:
    setting: Setting = one.metadata["setting"]
    default = {} if one.default is MISSING else one.default
    return Setting(**{**vars(setting), "name": one.name, "default": default})


SETTINGS = {one.name: _named(one) for one in fields(Settings) if "setting" in one.metadata}
"""Every setting by its name, in display order."""
