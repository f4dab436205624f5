"""Makes and validates the spec of a test. Commands, suites and campaigns all make theirs here.

The other ways to a spec start from one that was made here: a stored run's (respec.py), or a copy
with some fields replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.harness.userlock.user_lock import UserLock
from fencepost.settings import SETTINGS
from fencepost.workloads.locks.registry import LOCKS

BY_WORD = {word: setting for setting in SETTINGS.values() for word in setting.words}
"""Every setting by its names on a command line."""


def make(
    lock: str,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    name: str = "",
    own: UserLock | None = None,
    scenario: Mapping[str, Any] | None = None,
    scheduled: bool = False,
) -> Spec:
    """Return the spec of a test of this lock, or raise BadArguments.

    A setting that is missing has its default. One is named as on a command line and then read as
    text (`ttl="2s"`), or named as its field, with the field's value (`ttl_ms=2000`). Options may be
    text as well. `own` is the lock if no registry has it. `name` is the lock's unless given.

    Raises:
        BadArguments: naming the setting or option that is wrong, and the valid ones.
    """
    if not lock:
        raise BadArguments("which LOCK? `fencepost locks` lists them")
    found = dict(_read(word, value) for word, value in settings.items())
    if own is None and lock in LOCKS and LOCKS[lock].usual_ttl_ms:
        found.setdefault("ttl_ms", LOCKS[lock].usual_ttl_ms)
    return validate(
        Spec(
            name or lock,
            lock,
            lock_options(lock, options, own),
            **found,
            own=own,
            scenario=scenario,
            scheduled=scheduled,
        )
    )


def _read(word: str, value: Any) -> tuple[str, Any]:
    """Return the field of a setting, with its value."""
    if word in SETTINGS and word not in BY_WORD:
        return word, value
    setting = BY_WORD[choose("setting", word, BY_WORD)]
    try:
        return setting.name, setting.read(value)
    except ValueError as error:
        raise BadArguments(str(error)) from error


def lock_options(
    lock: str, given: Mapping[str, Any], own: UserLock | None = None
) -> dict[str, Any]:
    """Return every option of a lock with its value: as given, or its default.

    Raises:
        BadArguments: there is no such lock or option, or a value is wrong.
    """
    text = {name: str(value) for name, value in given.items()}
    try:
        found = own.lock_type(lock, given) if own else LOCKS[choose("lock", lock, LOCKS)]
        return found.read_options(text)
    except ValueError as error:
        raise BadArguments(str(error)) from error
