"""A setting of a run: how it is written, read, checked and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost import ranges, times


@dataclass(frozen=True)
class Form:
    """How a value is written on a command line, and shown to people.

    `unit` is that of the number in test.json. `read` raises ValueError.
    """

    metavar: str
    read: Callable[[str], Any]
    unit: str = ""
    describe: Callable[[Any], str] = "{:g}".format
    several: bool = False


def _parsed(type: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return type(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not {what}") from error

    return read


def _lengths(text: str) -> str:
    ranges.lengths(text, 1.0)
    return text.strip()


def _clients(text: str) -> str:
    ranges.clients(text, _ANY_NUMBER)
    return text.strip()


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r}: choose one of: true, false")
    return text.lower() == "true"


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise ValueError(f"{name or 'NAME'!r} has no value: write {name or 'NAME'}=VALUE")
    return name, value


# The test determines the number of clients (harness/spec/spec.py).
_ANY_NUMBER = 10**9

TIME_S = Form("TIME", times.from_zero, "s", times.describe)
TIME_MS = Form(
    "TIME",
    lambda text: round(times.from_zero(text) * 1000),
    "ms",
    lambda value: times.describe(value / 1000),
)
WHOLE = Form("NUMBER", _parsed(int, "an integer (for example: 7)"))
NUMBER = Form("NUMBER", _parsed(float, "a number (for example: 0.5)"))
WORD = Form("WORD", str)
LENGTHS = Form("LENGTH[..LENGTH]", _lengths, describe=str)
CLIENTS = Form("NUMBER[..NUMBER]", _clients, describe=str)
FILE = Form("FILE", str)
NAMES = Form("NAME,...", _names)
FAULTS = Form("FAMILY[:WHERE][/HOW][@INTERVAL][=WEIGHT],...", _names)
FLAG = Form("", _flag, describe=lambda value: "yes" if value else "no")
PAIRS = Form("KIND=VERSION", _pair, several=True)


@dataclass(frozen=True)
class Setting:
    """One setting: `name` is the key in test.json, `label` its name in the report, `what` its
    description. A setting without `options` is not on the command line. The first of `options` is
    its name, the others are aliases.

    A value is one of `choices`, if given (or a time, with `or_time`), and lies from `least` to
    `most`, if given.
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
        """Return its name in errors and in `fencepost.run`: time, failed_release."""
        return self.words[0]

    @property
    def words(self) -> list[str]:
        """Return all names that `fencepost.run` takes for it: time, time_limit."""
        return [one.strip("-").replace("-", "_") for one in self.options or (self.name,)]

    @property
    def title(self) -> str:
        """Return the label with the unit of the number."""
        return f"{self.label} ({self.form.unit})" if self.form.unit else self.label

    @property
    def help(self) -> str:
        """Return its description, choices and default, for the command line."""
        also = (*self.choices, *(["a time"] if self.or_time else []))
        words = f"{self.what}: {', '.join(also)}." if also else f"{self.what}."
        if self.default in ("", (), {}) or self.form is FLAG or self.name == "seed":
            return words
        shown = self.default if isinstance(self.default, str) else self.form.describe(self.default)
        return f"{words} [default: {shown}]"

    def read(self, given: Any) -> Any:
        """Read a value: text, a number, or names in a list; pairs in a mapping.

        Raises:
            ValueError: it cannot be read; the sentence begins with the setting's name.
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
        """Raise ValueError if the value is not one of the choices, or out of range."""
        if self.choices and value not in self.choices and not (self.or_time and _is_time(value)):
            also = ", or a time, for example 3s" if self.or_time else ""
            raise ValueError(
                f"there is no {self._noun} {value!r}; choose one of: "
                f"{', '.join(self.choices)}{also}"
            )
        if self.least is not None and self.most is not None:
            show = self.form.describe
            if not self.least <= value <= self.most:
                try:
                    shown = show(value)
                except (OverflowError, ValueError):  # no float, or no text, is that large
                    shown = "(a huge number)"
                allowed = f"{show(self.least)} to {show(self.most)}"
                raise ValueError(f"{self._noun} {shown} is out of range ({allowed})")

    def written(self, value: Any) -> list[str]:
        """Return the words of a command line that set this value; none if it is the default."""
        if not self.options or value in (None, "") or value == [] or value == ():
            return []
        if self.form is FLAG:
            return [self.options[0]] if value else []
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
