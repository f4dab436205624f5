"""The interface of a nemesis: faults, receipts, leftovers, inject and heal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Fault:
    """One fault to inject. `name` is unique in the run; `targets` are nodes."""

    name: str
    family: str
    targets: list[str]
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """Proof that a fault took effect, or is gone: `how` in words, `data` as measured."""

    proved: bool
    how: str
    data: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"proved": self.proved, "how": self.how} | self.data


def together(receipts: list[Receipt]) -> Receipt:
    """Combine several receipts into one, proved if all are; a single one is returned unchanged."""
    if len(receipts) == 1:
        return receipts[0]
    return Receipt(
        bool(receipts) and all(receipt.proved for receipt in receipts),
        "; ".join(receipt.how for receipt in receipts),
        {
            "pids": [receipt.data.get("pid") for receipt in receipts],
            "processes": [p for receipt in receipts for p in receipt.data.get("processes", ())],
        },
    )


@dataclass(frozen=True)
class Leftover:
    """A trace of a killed run on a node: its description, that of its removal, and the removal."""

    what: str
    undone: str
    undo: Callable[[], object]


class Nemesis(Protocol):
    """Injects faults of one family, and heals them.

    Both verbs check the node after they acted, and report the state that they found: a receipt that
    proves nothing is not an error. They raise only if the node cannot be reached.
    """

    def inject(self, fault: Fault) -> Receipt: ...

    def heal(self, fault: Fault) -> Receipt:
        """Heal a fault. Idempotent; a fault that was never injected counts as healed."""
