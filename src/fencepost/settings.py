"""The settings of a run: one field each, which says all there is to know about it.

`Settings` is the table. The command line's options, `fencepost.run`, test.json, the report's table
of settings and the command that runs a test again all come from it, and a scenario's settings are
its fields by name. So a new setting is one field here, and the place where it takes effect.

Its place is not the harness, because the report reads it too, which imports nothing of the harness.
Checks that depend on a lock, a guard or a cluster are in harness/spec/spec.py.
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
    WORD,
    Setting,
)


def _set(default: Any, setting: Setting) -> Any:
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={"setting": setting})
    return field(default=default, metadata={"setting": setting})


MOST_CLIENTS, MOST_LOCKS = 10, 100
MOST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Settings:
    """What may be set of a run of one lock. Times in s or ms as the names say.

    `options` are the lock's own, `name` is that of the folder of results. `scheduled` says that the
    faults were given and not drawn; `nemesis` then has their families. `scenario` describes the
    scenario that the run is of, if any. `segment` is the number of the segment that this is of a
    long run, from 1; 0 for a run of its own.
    """

    name: str
    lock: str
    options: Mapping[str, Any]
    nemesis: tuple[str, ...] = _set(
        (),
        Setting(
            "Nemesis",
            "The faults: `fencepost nemesis list` lists them",
            FAULTS,
            ("--nemesis", "--faults"),
        ),
    )
    aim: bool = _set(
        False,
        Setting(
            "Aim",
            "Faults strike when it matters: while a hold is on, at its holder or at the servers "
            "that granted it, or at the edge of its lease (docs/faults.md)",
            FLAG,
            ("--aim",),
        ),
    )
    guard: str = _set(
        "none",
        Setting(
            "Guard", "What the resource checks: `fencepost guards` lists them", WORD, ("--guard",)
        ),
    )
    store: str = _set(
        "",
        Setting(
            "Store",
            "Where the resource is kept: `fencepost guards` has the choices",
            WORD,
            ("--store",),
        ),
    )
    shared: float = _set(
        0.0,
        Setting(
            "Shared holds",
            "Which share of the holds is shared, for locks with that mode",
            NUMBER,
            ("--shared",),
            least=0,
            most=1,
        ),
    )
    locks: int = _set(
        1,
        Setting(
            "Locks",
            "How many locks there are, each with a resource of its own, and all for all clients",
            WHOLE,
            ("--locks",),
            least=1,
            most=MOST_LOCKS,
        ),
    )
    server: Mapping[str, str] = _set(
        {},
        Setting(
            "Servers' versions",
            "Another version of the servers of a kind, etcd=3.4 say",
            PAIRS,
            ("--server",),
        ),
    )
    services: tuple[str, ...] = _set(
        (),
        Setting(
            "Services",
            "The services of --compose that are the servers, as [KIND=]NAME[:PORT]",
            NAMES,
            ("--servers",),
        ),
    )
    compose: str = _set(
        "",
        Setting(
            "Compose file",
            "A Compose file of yours, of which --servers names the servers (docs/your-servers.md)",
            FILE,
            ("--compose",),
        ),
    )
    containers: tuple[str, ...] = _set(
        (),
        Setting(
            "Containers",
            "Containers of yours that are the servers, as [KIND=]NAME[:PORT]",
            NAMES,
            ("--containers",),
        ),
    )
    time_s: float = _set(
        60.0,
        Setting(
            "Time",
            "How long the clients work",
            TIME_S,
            ("--time", "--time-limit"),
            least=1,
            most=86_400,
        ),
    )
    segment_s: float = _set(
        600.0,
        Setting(
            "Segment",
            "A longer run is cut into segments of about this length, each with a lock, a history, "
            "a verdict and a page of its own",
            TIME_S,
            ("--segment",),
            least=5,
            most=3600,
        ),
    )
    seed: int = _set(
        0,
        Setting(
            "Seed",
            "What all random choices come from",
            WHOLE,
            ("--seed",),
            least=-MOST_SEED,
            most=MOST_SEED,
        ),
    )
    concurrency: int = _set(
        5,
        Setting(
            "Concurrency",
            "How many clients there are, one a node",
            WHOLE,
            ("--concurrency",),
            least=1,
            most=MOST_CLIENTS,
        ),
    )
    ttl_ms: int = _set(
        2000,
        Setting("TTL", "The lease of a grant", TIME_MS, ("--ttl",), least=100, most=600_000),
    )
    hold: str = _set(
        "0..1.6ttl",
        Setting(
            "Holds",
            "How long a client holds the lock, 20ms or 0.9ttl..1.2ttl say; one that holds it past "
            "its lease says so in good time, and releases late",
            LENGTHS,
            ("--hold",),
        ),
    )
    think: str = _set(
        "0..1ttl",
        Setting(
            "Thinking",
            "How long a client rests between two holds, 0..20ms or 0.5ttl say",
            LENGTHS,
            ("--think",),
        ),
    )
    contention: str = _set(
        "1..all",
        Setting(
            "Contention",
            "How many clients ask for locks at a time; the number changes every two TTLs",
            CLIENTS,
            ("--contention",),
        ),
    )
    interval_s: float = _set(
        5.0,
        Setting(
            "Interval of faults",
            "How far apart the faults of a family are, about",
            TIME_S,
            ("--interval",),
            least=0.01,
            most=86_400,
        ),
    )
    persistence: str = _set(
        "none",
        Setting(
            "Persistence",
            "How Redis keeps its data",
            WORD,
            ("--persistence",),
            ("none", "everysec", "always"),
        ),
    )
    restart: str = _set(
        "at-once",
        Setting(
            "Restart",
            "When a server that was killed is back",
            WORD,
            ("--restart",),
            ("at-once", "after-ttl", "never"),
            or_time=True,
        ),
    )
    failed_release: str = _set(
        "ended",
        Setting(
            "A failed release means",
            "What a release that failed did to the hold",
            WORD,
            ("--failed-release",),
            ("ended", "nothing"),
        ),
    )
    until: tuple[str, ...] = _set(
        (),
        Setting(
            "Stopped by a violation of",
            "Stop at the first violation that one of these checkers finds",
            NAMES,
            ("--until",),
        ),
    )
    work: Mapping[str, float] = _set(
        {}, Setting("Work", "How likely a holder is to extend its lease (extend)")
    )
    liveness_bound_s: float = _set(
        5.0,
        Setting(
            "Liveness bound",
            "How long after the last fault each lock must be granted again",
            TIME_S,
            least=0,
            most=86_400,
        ),
    )
    scheduled: bool = False
    scenario: Mapping[str, Any] | None = None
    segment: int = 0


def _named(one: Field[Any]) -> Setting:
    setting: Setting = one.metadata["setting"]
    default = {} if one.default is MISSING else one.default
    return Setting(**{**vars(setting), "name": one.name, "default": default})


SETTINGS = {one.name: _named(one) for one in fields(Settings) if "setting" in one.metadata}
"""Every setting by its name, in the order in which a reader is shown them."""
