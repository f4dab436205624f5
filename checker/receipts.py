"""The verdict `faults`: whether each requested fault took effect and was healed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker.facts.faults import Fault, faults
from fencepost.checker.history.history import History
from fencepost.checker.verdict import Verdict


def check(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that every fault took effect and was healed; without its receipt nothing was tested."""
    found = faults(history)
    unproved = [f for f in found if not f.proved]
    unhealed = [f for f in found if f.proved and not f.healed]
    evidence = [
        {
            "what": f"{f.describe()}: no receipt; nothing proves that it took effect."
            + (f" Reason: {_reason(f)}." if _reason(f) else ""),
            "time_ns": f.start,
        }
        for f in unproved
    ] + [
        {"what": f"{f.describe()}: nothing proves that it was healed.", "time_ns": f.start}
        for f in unhealed
    ]
    if evidence:
        reasons = {_reason(fault) for fault in (*unproved, *unhealed)}
        why = reasons.pop() if len(reasons) == 1 else ""
        shared = f" ({why})" if why else ""
        return Verdict(
            "unknown", f"{len(evidence)} of {len(found)} faults lack a receipt{shared}.", evidence
        )
    came = {fault.family for fault in found}
    asked = _families(test.get("nemesis") or ())
    missed = [family for family in asked if family not in came]
    if missed:
        wanted = ", ".join(missed)
        return Verdict("unknown", f"Faults were requested ({wanted}) and none was injected.")
    if not found:
        return Verdict(True, "No faults were requested.")
    if len(found) == 1:
        return Verdict(True, "The fault has its receipts, and was healed.")
    return Verdict(True, f"All {len(found)} faults have their receipts, and were healed.")


def _reason(fault: Fault) -> str:
    """Return why a fault has no receipt, as the nemesis recorded it; "" if it did not."""
    lacking = (receipt for receipt in fault.receipts if not receipt.get("proved"))
    return str(next(lacking, {}).get("how") or "").rstrip(".")


def _families(entries: Iterable[str]) -> list[str]:
    """Return the families named in `nemesis` of test.json, each once: the part before the
    target, variant, interval or weight (FAMILY[:TARGET][/VARIANT][@INTERVAL][=WEIGHT])."""
    return list(dict.fromkeys(re.split("[:/@=]", entry.strip())[0] for entry in entries))
