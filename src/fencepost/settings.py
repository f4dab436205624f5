"""The settings of a run: one field each, which says all there is to know about it.

`Settings` is the table. The command line's options, `fencepost.run`, test.json, the report's table
of settings and the command that runs a test again all come from it, and a scenario's settings are
its fields by name. So a new setting is one field here, and the place where it takes effect.

Its place is not the harness, because the report reads it too, which imports nothing of the harness.
What depends on a lock, a guard or a cluster is checked where these are known (harness/run/spec.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from fencepost import times


@dataclass(frozen=True)
class Form:
    """How a value is written on a command line, and how a person reads it.

    `unit` is that of the number in test.json. `read` raises ValueError.
    """

    metavar: str
    read: Callable[[str], Any]
    unit: str = ""
    describe: Callable[[Any], str] = "{:g}".format
    several: bool = False


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no number: write a whole number, 7 say") from error


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no number: write 0.5, say") from error


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise ValueError(f"{name or 'NAME'!r} has no value: write {name or 'NAME'}=VALUE")
    return name, value


TIME_S = Form("TIME", times.seconds, "s", times.describe)
TIME_MS = Form(
    "TIME",
    lambda text: round(times.seconds(text) * 1000),
    "ms",
    lambda value: times.describe(value / 1000),
)
WHOLE = Form("NUMBER", _whole)
NUMBER = Form("NUMBER", _number)
WORD = Form("WORD", str)
NAMES = Form("NAME,...", _names)
FAULTS = Form("FAMILY[:WHERE][/HOW][@INTERVAL][=WEIGHT],...", _names)
PAIRS = Form("NAME=VALUE", _pair, several=True)


@dataclass(frozen=True)
class Setting:
    """One setting: `name` is the key in test.json, `label` the report's word for it, `what` what it
    changes. One without `options` is none of the command line's.

    A value is one of `choices`, where there are some (or a time, with `or_time`), and lies from
    `least` to `most`, where these are given.
    """

    label: str
    what: str
    form: Form = WORD
    options: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    or_time: bool = False
    least: float | None = None
    most: float | None = None
    name: str = ""
    default: Any = None

    @property
    def word(self) -> str:
        """Its name as `fencepost.run` takes it, and an error names it: time, failed_release."""
        option = self.options[0] if self.options else self.name
        return option.strip("-").replace("-", "_")

    @property
    def title(self) -> str:
        """The label with the unit of the number."""
        return f"{self.label} ({self.form.unit})" if self.form.unit else self.label

    @property
    def help(self) -> str:
        """What it changes, its choices and its default, for the command line."""
        also = (*self.choices, *(["a time"] if self.or_time else []))
        words = f"{self.what}: {', '.join(also)}." if also else f"{self.what}."
        if self.default in ("", (), {}) or self.name == "seed":
            return words
        shown = self.default if isinstance(self.default, str) else self.form.describe(self.default)
        return f"{words} [default: {shown}]"

    def read(self, given: Any) -> Any:
        """The value that was written: text, a number, or names in a list; pairs in a mapping.

        Raises:
            ValueError: it cannot be read, in a sentence that begins with the setting's name.
        """
        if not self.options:
            return given
        if self.form.several:
            if isinstance(given, Mapping):
                return dict(given)
            return dict(map(self._read, [given] if isinstance(given, str) else given))
        if isinstance(given, Sequence) and not isinstance(given, str):
            given = ",".join(given)
        return self._read(str(given))

    def _read(self, text: str) -> Any:
        try:
            return self.form.read(text)
        except ValueError as error:
            raise ValueError(f"{self._noun} {error}") from error

    def check(self, value: Any) -> None:
        """Raise ValueError if the value is none of the choices, or out of range."""
        if self.choices and value not in self.choices and not (self.or_time and _is_time(value)):
            also = ", or a time, 3s say" if self.or_time else ""
            raise ValueError(
                f"there is no {self._noun} {value!r}; choose one of: "
                f"{', '.join(self.choices)}{also}"
            )
        if self.least is not None and self.most is not None:
            show = self.form.describe
            if not self.least <= value <= self.most:
                raise ValueError(
                    f"{self._noun} {show(value)} is out of range "
                    f"({show(self.least)} to {show(self.most)})"
                )

    def written(self, value: Any) -> list[str]:
        """The words of a command line that set this value; none where there is nothing to set."""
        if not self.options or value in (None, "") or value == [] or value == ():
            return []
        if isinstance(value, Mapping):
            return [word for k, v in value.items() for word in (self.options[0], f"{k}={v}")]
        if isinstance(value, list | tuple):
            value = ",".join(map(str, value))
        if isinstance(value, float):
            value = f"{value:g}"
        return [self.options[0], f"{value}{self.form.unit}"]

    @property
    def _noun(self) -> str:
        return self.word.replace("_", " ") if not self.label.isupper() else self.label


def _is_time(text: str) -> bool:
    try:
        times.seconds(text)
    except ValueError:
        return False
    return True


def _set(default: Any, setting: Setting) -> Any:
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={"setting": setting})
    return field(default=default, metadata={"setting": setting})


MOST_CLIENTS, MOST_LOCKS = 10, 100


@dataclass(frozen=True)
class Settings:
    """What may be set of a run of one lock. Times in s or ms as the names say.

    `options` are the lock's own, `name` is that of the folder of results. `scheduled` says that the
    faults were given and not drawn; `nemesis` then has their families. `scenario` describes the
    scenario that the run is of, if any.
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
            ("--nemesis",),
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
    seed: int = _set(0, Setting("Seed", "What all random choices come from", WHOLE, ("--seed",)))
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
    interval_s: float = _set(
        5.0,
        Setting(
            "Interval of faults",
            "How far apart the faults of a family are, about",
            TIME_S,
            ("--interval",),
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
    work: Mapping[str, float] = _set({}, Setting("Work", "Settings of the clients' generator"))
    liveness_bound_s: float = _set(
        5.0,
        Setting(
            "Liveness bound",
            "How long after the last fault each lock must be granted again",
            TIME_S,
        ),
    )
    scheduled: bool = False
    scenario: Mapping[str, Any] | None = None


def _named(one: Field[Any]) -> Setting:
    setting: Setting = one.metadata["setting"]
    default = {} if one.default is MISSING else one.default
    return Setting(**{**vars(setting), "name": one.name, "default": default})


SETTINGS = {one.name: _named(one) for one in fields(Settings) if "setting" in one.metadata}
"""Every setting by its name, in the order in which a reader is shown them."""
