"""The skew of clocks that a clock fault's arguments describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KINDS = ("jump", "drift", "strobe", "reset")
CLOCKS = ("wall", "monotonic")


@dataclass(frozen=True)
class Skew:
    """How clocks are off, from now on."""

    kind: str
    clocks: tuple[str, ...]
    offset_s: float = 0.0
    rate: float = 1.0
    period_s: float = 0.0

    @staticmethod
    def of(arguments: dict[str, Any]) -> Skew:
        """Parse a fault's arguments. ValueError with the reason if they are invalid."""
        skew = Skew(
            arguments.get("kind", "jump"),
            tuple(arguments.get("clocks", ("wall",))),
            float(arguments.get("offset_s", 0.0)),
            float(arguments.get("rate", 1.0)),
            float(arguments.get("period_s", 0.0)),
        )
        try:
            skew._must_make_sense()
        except ValueError as error:
            raise ValueError(f"clock {skew.kind}: {error}") from error
        return skew

    def _must_make_sense(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no such kind; choose one of {', '.join(KINDS)}")
        if not self.clocks or not set(self.clocks) <= set(CLOCKS):
            named = ", ".join(self.clocks) or "none"
            raise ValueError(f"clocks {named}: choose from {', '.join(CLOCKS)}")
        needed = {"jump": ("offset_s",), "drift": ("rate",), "strobe": ("offset_s", "period_s")}
        given = {"offset_s": self.offset_s, "rate": self.rate - 1, "period_s": self.period_s}
        for name in given:
            if bool(given[name]) != (name in needed.get(self.kind, ())):
                raise ValueError(f"it {'takes no' if given[name] else 'needs'} {name}")
        if not 0 <= self.rate <= 1000 or self.period_s < 0:
            raise ValueError("rate must be from 0 to 1000, and period_s above 0")

    def __str__(self) -> str:
        clocks = " and ".join(self.clocks)
        return {
            "jump": f"{clocks} clock set to {self.offset_s:+.3f} s",
            "drift": f"{clocks} clock set to run at {self.rate:g} times its rate",
            "strobe": f"{clocks} clock set to {self.offset_s:+.3f} s and right again, every "
            f"{self.period_s * 1000:g} ms",
            "reset": f"{clocks} clock set right",
        }[self.kind]
