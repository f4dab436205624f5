"""Injects faults, heals them, and writes both into the history with their receipts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

from fencepost.nemesis import failpoints
from fencepost.nemesis.chains import Chains
from fencepost.nemesis.families import FAMILIES, collide, describe, facts
from fencepost.nemesis.family import Strike
from fencepost.nemesis.nemesis import Fault, Nemesis, Receipt
from fencepost.nemesis.schedule import Scheduled
from fencepost.nemesis.site import Site
from fencepost.nemesis.targets import HOLDER, PRIMARY, Layout, leader, renamed
from fencepost.nemesis.timetable import Over, Timetable

_ASKED: Mapping[str, Callable[[Site, Fault], tuple[str, str]]] = {
    PRIMARY: lambda site, fault: leader(site),
    HOLDER: lambda site, fault: (
        failpoints.who_comes if "client" in fault.arguments else FAMILIES[fault.family].holder
    )(site, fault),
}
"""Names that are resolved, with their descriptions, when the fault begins."""

Record = Callable[[str, str, dict[str, Any], list[str] | None], None]
"""Writes an op of the nemesis: type, f, value, error."""


class Director:
    """Injects and heals faults. It knows every injected fault that is not healed, so that
    `heal_all` can.

    `unhealed`: faults that could not be healed, and why. `loses`: any fault at a server may cause a
    failover, and so servers that forget.
    """

    def __init__(self, site: Site, record: Record, loses: bool = False) -> None:
        self._loses = loses
        self._site = site
        self._record = record
        self._chains = Chains(site)
        self._nemeses: dict[str, Nemesis] = {}
        self._on: dict[str, Fault] = {}
        self.unhealed: list[str] = []
        self._lock = threading.Lock()
        self._timetable: Timetable | None = None

    @property
    def on(self) -> list[Fault]:
        """Return the active faults."""
        with self._lock:
            return list(self._on.values())

    def inject(self, fault: Fault) -> Receipt:
        """Inject a fault; return its receipt, which proves nothing if the node did not answer.

        One that failed half-way is healed at once, and recorded as failed.
        """
        waited = HOLDER in _named(fault)  # for the client that reaches the failpoint first
        try:
            fault = _resolved(self._site, fault)
            moment = FAMILIES[fault.family].moment
            moment = failpoints.await_failpoint if "client" in fault.arguments else moment
            if moment is not None and not waited:
                moment(self._site, fault)
        except Exception as error:  # an error of a node or a server is recorded, not fatal
            failed = _failed(error)
            with suppress(Exception):
                failpoints.resume(self._site, fault)
            return self._do(fault, "start", lambda _: failed)
        with self._lock:
            self._on[fault.name] = fault
        receipt = self._do(fault, "start", self._inject)
        if "failed" in receipt.data:
            self.heal(fault.name)
        return receipt

    def _inject(self, fault: Fault) -> Receipt:
        try:
            receipt = self._nemesis(fault.family).inject(fault)
        finally:
            at = failpoints.resume(self._site, fault)
        if not at:
            return receipt
        how = f"{receipt.how}; {fault.arguments['client']} was stopped {at} until then"
        return Receipt(receipt.proved, how, receipt.data | {"at": at})

    def heal(self, name: str) -> Receipt:
        with self._lock:
            fault = self._on.get(name)
        if fault is None:
            return Receipt(True, "it was not active")
        receipt = self._do(fault, "end", self._heal_surely)
        with self._lock:
            self._on.pop(name, None)
        if "failed" in receipt.data:
            self.unhealed.append(f"{fault.arguments['words']} ({receipt.data['failed']})")
        return receipt

    def _heal_surely(self, fault: Fault) -> Receipt:
        """Retry the heal if the first attempt did not get through: the connection to a node may
        have been lost because of the fault, and healing is idempotent."""
        heal = self._nemesis(fault.family).heal
        try:
            return heal(fault)
        except Exception:  # any error is reported if it happens again
            return heal(fault)

    def _nemesis(self, family: str) -> Nemesis:
        """Return the family's only nemesis. It heals the faults that it injected."""
        with self._lock:
            if family not in self._nemeses:
                self._nemeses[family] = FAMILIES[family].make(self._site, self._chains)
            return self._nemeses[family]

    def heal_all(self) -> None:
        """Heal active faults, and remove the chains that had rules."""
        self.heal_faults()
        self._chains.take_off()

    def heal_faults(self) -> None:
        """Heal active faults. Messages that a fault has lost for good stay lost until
        `heal_all`."""
        if self._timetable is not None:
            self._timetable.stop()
        for fault in self.on:
            self.heal(fault.name)

    def run(
        self,
        schedule: Sequence[Scheduled],
        until: Callable[[], bool],
        layout: Layout | None = None,
    ) -> None:
        """Carry out a schedule, and heal active faults at its end or once `until` returns true.

        With a layout, no fault is injected during another one that should have ended by then and
        collides with it: a server that is not up yet has no links to cut.
        """

        def apart(mine: Scheduled, other: Scheduled) -> bool:
            return layout is not None and collide(
                _strike(mine, layout), _strike(other, layout), layout
            )

        self._timetable = Timetable(self.inject, self.heal, self._over, apart)
        try:
            self._timetable.carry_out(schedule, until)
        finally:
            self.heal_all()

    def _over(self, fault: Fault) -> Over | None:
        family = FAMILIES[fault.family]
        with self._lock:
            fault = self._on.get(fault.name, fault)  # with the nodes that it has affected
        return family.over(self._site, fault) if family.over else None

    def _do(self, fault: Fault, phase: str, act: Callable[[Fault], Receipt]) -> Receipt:
        value: dict[str, Any] = {
            "fault": fault.name,
            "phase": phase,
            "targets": fault.targets,
            "arguments": fault.arguments,
        }
        if phase == "start":
            value |= facts(fault.family, fault.targets, fault.arguments)
            if self._loses and not set(fault.targets).isdisjoint(self._site.servers):
                value["forgets"] = True
        # A fault that cannot be recorded is not injected; active ones are healed in any case.
        with suppress(OSError) if phase == "end" else nullcontext():
            self._record("invoke", fault.family, value, None)
        try:
            receipt = act(fault)
        except Exception as error:  # an error of a node or a server is recorded, not fatal
            receipt = _failed(error)
        # Without proof it is unknown whether it happened, which is the meaning of info.
        type = "ok" if receipt.proved else "info"
        error_field = None if receipt.proved else ["unproved", receipt.how]
        with suppress(OSError) if phase == "end" else nullcontext():
            self._record(type, fault.family, value | {"receipt": receipt.to_json()}, error_field)
        return receipt


def _resolved(site: Site, fault: Fault) -> Fault:
    """Return the fault with its words, with the current leader for `primary` and the client that
    holds a lock for `holder`.

    Raises RuntimeError if no server reports that it leads.
    """
    found = {name: ask(site, fault) for name, ask in _ASKED.items() if name in _named(fault)}
    if not found:
        words = describe(fault.family, fault.targets, fault.arguments)
        return replace(fault, arguments=fault.arguments | {"words": words})
    nodes = {name: node for name, (node, _) in found.items()}
    targets, arguments = renamed(fault.targets, fault.arguments, nodes)
    # Earlier words do not name the node.
    unsaid = {name: value for name, value in fault.arguments.items() if name != "words"}
    called = {name: words for name, (_, words) in found.items()}
    words = describe(fault.family, fault.targets, unsaid, called)
    return Fault(fault.name, fault.family, targets, arguments | {"words": words})


def _named(fault: Fault) -> list[str]:
    """Return the targets, and the client whose request the fault meets."""
    return [*fault.targets, fault.arguments.get("client", "")]


def _strike(one: Scheduled, layout: Layout) -> Strike:
    return FAMILIES[one.family].strike(one.targets, one.arguments, layout)


def _failed(error: Exception) -> Receipt:
    return Receipt(False, f"it could not be carried out: {error}", {"failed": str(error)})
