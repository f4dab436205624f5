"""The spec of a stored run, to run it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from fencepost import ranges
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec.early_stop import ANY
from fencepost.harness.spec.make import lock_options
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.harness.userlock.user_lock import from_json as stored_own


def respec(test: Mapping[str, Any], run: Path = Path()) -> Spec:
    """Return the spec in a run's test.json; `run` is its folder, which has the code of a user lock.

    Raises:
        BadArguments: it is a scenario's, or this version cannot run it.
    """
    if test.get("scenario"):
        raise BadArguments("a scenario's faults are its schedule: run its suite again instead")
    described = dict(test)
    if "until" not in test and test.get("until_violation"):
        described["until"] = (ANY,)  # as older versions stored it
    if "etcd" in test and "server" not in test:  # as older versions stored it
        described["server"] = {"etcd": test["etcd"]}
    if "hold" not in test:
        described |= _short_work(test.get("work"))
    try:
        lock = msgspec.convert(test.get("lock"), _Lock)
        own = stored_own(lock.own, run) if lock.own is not None else None
        options = lock_options(lock.name, lock.options) if own is None else lock.options
        described |= {"lock": lock.name, "options": options, "own": None}
        spec = replace(msgspec.convert(described, Spec), own=own)
    except msgspec.ValidationError as error:
        raise BadArguments(f"its test.json does not describe a test: {error}") from error
    return validate(spec)


def _short_work(work: Any) -> dict[str, Any]:
    """Return the clients' work in a run of an older version, with its shorter holds and rests."""
    rest = dict(work) if isinstance(work, Mapping) else {}
    hold, think = rest.pop("think_ms", 20), rest.pop("pause_ms", 20)
    return {
        "hold": f"0..{hold}ms" if hold else "0",
        "think": f"0..{think}ms" if think else "0",
        "contention": ranges.ALL,
        "work": rest or {},
    }


class _Lock(msgspec.Struct):
    """Return the part of a test.json that names the tested lock."""

    name: str
    options: dict[str, bool | int | float | str]
    own: dict[str, Any] | None = None
