"""The fields of objects besides their metadata: how the server reads and validates them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fencepost.hunt.models.kubernetes.kinds import Kind, Malformed
from fencepost.hunt.models.kubernetes.status import Fault
from fencepost.hunt.models.kubernetes.times import parse_micro
from fencepost.hunt.sim.unknown import Unknown

Object = dict[str, Any]

_SPEC = {
    "holderIdentity": str,
    "leaseDurationSeconds": int,
    "acquireTime": str,
    "renewTime": str,
    "leaseTransitions": int,
}
_NOT_A_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def read(kind: Kind, given: Mapping[str, Any]) -> Object:
    """Return the fields as the server keeps them: without null and empty fields.

    Raises:
        Malformed: a field has the wrong type.
        Unknown: the model does not have a field.
    """
    if strange := sorted(set(given) - {"kind", "apiVersion", "metadata", *kind.fields}):
        raise Unknown(f"the model of Kubernetes has no field {strange[0]} of {kind.name}")
    if kind.name == "Lease":
        return {"spec": _spec(given.get("spec"))}
    if kind.name == "Endpoints":
        if given.get("subsets"):
            raise Unknown("the model of Kubernetes has no subsets of Endpoints")
        return {}
    if any(given.get(name) is not None for name in ("binaryData", "immutable")):
        raise Unknown("the model of Kubernetes has no binaryData and no immutable of ConfigMap")
    data = _data(given.get("data"))
    return {"data": data} if data else {}


def faults(kind: Kind, made: Object) -> list[Fault]:
    """Return the faults of the values."""
    if kind.name == "ConfigMap":
        keys = sorted(made.get("data", {}))
        return [fault for key in keys for fault in _key(key)]
    spec, found = made.get("spec", {}), []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        value = spec["leaseDurationSeconds"]
        found.append(Fault("spec.leaseDurationSeconds", value, "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        value = spec["leaseTransitions"]
        found.append(Fault("spec.leaseTransitions", value, "must to greater or equal than 0"))
    return found


def _data(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Malformed("data is no object")
    found = {key: "" if value is None else value for key, value in given.items()}
    if not all(isinstance(value, str) for value in found.values()):
        raise Malformed("a value of data is no string")
    return found


def _key(key: str) -> list[Fault]:
    where = f"data[{key}]"
    if key in (".", "..") or key.startswith("..") or len(key) > 253:
        raise Unknown(f"the model of Kubernetes does not validate the key {key!r}")
    return [] if re.fullmatch("[-._a-zA-Z0-9]+", key) else [Fault(where, key, _NOT_A_KEY)]


def _spec(given: Any) -> Object:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Malformed("spec is no object")
    spec = {name: value for name, value in given.items() if value is not None}
    for name, value in spec.items():
        if name not in _SPEC:
            raise Unknown(f"the model of Kubernetes has no field spec.{name} of Lease")
        if type(value) is not _SPEC[name]:
            raise Malformed(f"spec.{name} has the wrong type")
        if isinstance(value, int) and not -(1 << 31) <= value < 1 << 31:
            raise Malformed(f"spec.{name} is no integer of 32 bits")
    for name in ("acquireTime", "renewTime"):
        if name in spec:
            spec[name] = _time(spec[name])
    return spec


def _time(text: str) -> str:
    try:
        return parse_micro(text)
    except ValueError:
        words = f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00"'
        raise Malformed(words) from None
