"""An option of a lock, and the options that several locks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

_MOST = 10**9
# Bounds for a number of unknown meaning: integers that msgspec and other languages support.
_MOST_FREE = 2**63 - 1


@dataclass(frozen=True)
class Option:
    """One option of a lock: its default, and its values or its minimum.

    `free`: the valid values are unknown. It is a number, true or false if it looks like one, else
    text.
    """

    default: Any
    choices: tuple[Any, ...] = ()
    least: int = 0
    what: str = ""
    free: bool = False

    def read(self, name: str, text: str) -> Any:
        """Return the value that `text` means.

        Raises:
            ValueError: the text names the valid values.
        """
        if self.free:
            return _as_written(text)
        if self.choices:
            for choice in self.choices:
                if text.lower() == str(choice).lower():
                    return choice
            valid = ", ".join(str(choice).lower() for choice in self.choices)
            raise ValueError(f"option {name}={text:.40}: choose one of {valid}")
        try:
            number = int(text)
        except ValueError:
            number = self.least - 1
        if not self.least <= number <= _MOST:
            raise ValueError(
                f"option {name}={text:.40}: must be an integer from {self.least} to {_MOST}"
            )
        return number


def _as_written(text: str) -> bool | int | float | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        return value if abs(value) <= _MOST_FREE else text
    return text


POLLS: Final = {
    "retries": Option(10, what="retries before acquire gives up"),
    "retry_delay_ms": Option(100, least=1, what="the longest random delay between tries"),
    "node_timeout_ms": Option(50, least=1, what="timeout for one server's answer"),
}
"""The options of a lock that polls until it is free (see retry.py)."""

WAITS: Final = {
    "wait_ms": Option(10_000, least=1, what="how long acquire waits for its turn"),
    "node_timeout_ms": Option(1000, least=1, what="timeout for one request"),
}
"""The options of a lock that waits in a queue."""
