"""Several objects in one history, as jepsen.independent has them: each value is [key, value].

Each key is an object of its own, with the model's value. A read of `[key, null]` has no
information.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fencepost.checker.lincheck.history import UNKNOWN, Call
from fencepost.checker.lincheck.model import BadValue, Model, frozen


def independent(model: Model) -> Model:
    """Return the model of many such objects, told apart by the keys in the values."""
    return replace(
        model,
        action=lambda call: model.action(_unpaired(call)),
        partition=lambda call: (frozen(_pair(call, call.value)[0]), model.partition(call)),
    )


def _unpaired(call: Call) -> Call:
    """Return the call as one on its object alone."""
    result = call.result
    if call.type == "ok" and isinstance(result, list | tuple):
        result = _pair(call, result)[1]
        result = UNKNOWN if result is None and call.f == "read" else result
    return call._replace(value=_pair(call, call.value)[1], result=result)


def _pair(call: Call, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise BadValue(f"with --keyed, {call.f} needs [key, value], not {value!r:.40}")
    return list(value)
