"""Facts that only a run's history has; run.json has them once the run is judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History
from fencepost.runfiles import merged


def learnt(test: Mapping[str, Any], history: History) -> dict[str, Any]:
    """Return the facts that the description of a run lacks, as run.json has them; empty if none.

    Of a history that another program wrote: which checkers it has something for. Of a user lock:
    whether its grants carried tokens, and so which checkers do not apply.
    """
    facts = {} if "checkers" in test else _checkers(history)
    return facts | _tokens(merged(test, facts), history)


def _checkers(history: History) -> dict[str, Any]:
    touched = {name: checker.touches(history) for name, checker in CHECKERS.items()}
    return {
        "checkers": [name for name, something in touched.items() if something],
        "not_checked": {
            name: "the history has nothing for it"
            for name, something in touched.items()
            if not something
        },
    }


def _tokens(test: Mapping[str, Any], history: History) -> dict[str, Any]:
    if (test.get("lock") or {}).get("token") != "unknown":
        return {}
    has = {"lock": {"token": any(op.value.get("token") is not None for op in history.clients())}}
    known = merged(test, has)
    reasons = {
        name: why
        for name in test["checkers"]
        if name in CHECKERS and (why := CHECKERS[name].applies(known))
    }
    left = [name for name in test["checkers"] if name not in reasons]
    return has | {"checkers": left, "not_checked": {**(test.get("not_checked") or {}), **reasons}}
