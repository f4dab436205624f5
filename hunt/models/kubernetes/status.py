"""The answers of the API server to requests that it refuses (apimachinery/pkg/api/errors)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fencepost.hunt.models.kubernetes.kinds import Kind

Object = dict[str, Any]
_STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def encoded(answer: Object) -> bytes:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Refusal(Exception):
    """A request that is refused, with the fields of its Status."""

    code: int
    reason: str
    message: str
    details: Object | None = None

    def status(self) -> Object:
        found = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        }  # fmt: skip
        if self.reason:
            found["reason"] = self.reason
        if self.details is not None:
            found["details"] = self.details
        return found


@dataclass(frozen=True)
class Fault:
    """A field with a value that is not allowed. `value` is None if a required one is missing."""

    where: str
    value: Any
    detail: str

    @property
    def body(self) -> str:
        if self.value is None:
            return f"Required value: {self.detail}"
        shown = json.dumps(self.value, ensure_ascii=False)
        return f"Invalid value: {shown}: {self.detail}"

    def cause(self) -> Object:
        reason = "FieldValueRequired" if self.value is None else "FieldValueInvalid"
        return {"reason": reason, "message": self.body, "field": self.where}


def details(kind: Kind, name: str, plural: bool = True) -> Object:
    found = {"kind": kind.plural if plural else kind.name}
    return {
        **found,
        **({"name": name} if name else {}),
        **({"group": kind.group} if kind.group else {}),
    }


def not_found(kind: Kind, name: str) -> Refusal:
    words = f'{kind.resource} "{name}" not found'
    return Refusal(404, "NotFound", words, details(kind, name))


def conflict(kind: Kind, name: str, words: str = _STALE, plural: bool = True) -> Refusal:
    resource = kind.resource if plural else kind.qualified
    message = f'Operation cannot be fulfilled on {resource} "{name}": {words}'
    return Refusal(409, "Conflict", message, details(kind, name, plural))


def bad_request(words: str) -> Refusal:
    return Refusal(400, "BadRequest", words)


def unversioned(kind: Kind, name: str) -> Refusal:
    """A replace that must name a version. The server shows zero as a number of Go, and the resource
    where it shows the kind in other answers."""
    words = "Invalid value: 0x0: must be specified for an update"
    where = "metadata.resourceVersion"
    message = f'{kind.resource} "{name}" is invalid: {where}: {words}'
    cause = {"reason": "FieldValueInvalid", "message": words, "field": where}
    return Refusal(422, "Invalid", message, details(kind, name) | {"causes": [cause]})


def invalid(kind: Kind, name: str, faults: list[Fault]) -> Refusal:
    """Each sentence is said once, but has a cause each time."""
    said = list(dict.fromkeys(f"{one.where}: {one.body}" for one in faults))
    words = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    causes = {"causes": [one.cause() for one in faults]}
    message = f'{kind.qualified} "{name}" is invalid: {words}'
    return Refusal(422, "Invalid", message, details(kind, name, plural=False) | causes)
