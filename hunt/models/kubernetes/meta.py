"""The metadata of objects: how the server reads and validates it."""

from __future__ import annotations

import re
from typing import Any

from fencepost.hunt.models.kubernetes.kinds import Malformed
from fencepost.hunt.models.kubernetes.status import Fault
from fencepost.hunt.sim.unknown import Unknown

Object = dict[str, Any]

_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp",
          "selfLink")  # fmt: skip
_MAPS = ("labels", "annotations")
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WORD = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NOT_A_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NOT_A_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_NOT_A_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
IMMUTABLE = "field is immutable"


def read(given: Any) -> Object:
    """Return metadata as the server keeps it: without null and empty fields.

    Raises:
        Malformed: a field has the wrong type.
        Unknown: the model does not have a field.
    """
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Malformed("metadata is no object")
    found: Object = {}
    for name, value in given.items():
        if name == "managedFields" or value is None:
            continue
        if name in _TEXTS:
            if not isinstance(value, str):
                raise Malformed(f"metadata.{name} is no string")
        elif name in _MAPS:
            if not isinstance(value, dict):
                raise Malformed(f"metadata.{name} is no object")
            value = {key: "" if one is None else one for key, one in value.items()}
            if not all(isinstance(one, str) for one in value.values()):
                raise Malformed(f"a value of metadata.{name} is no string")
        else:
            raise Unknown(f"the model of Kubernetes has no metadata.{name}")
        if value:
            found[name] = value
    return found


def faults_of_name(name: str) -> list[Fault]:
    where = "metadata.name"
    if not name:
        return [Fault(where, None, "name or generateName is required")]
    found = []
    if len(name) > 253:
        found.append(Fault(where, name, "must be no more than 253 characters"))
    if not re.fullmatch(_SUBDOMAIN, name):
        found.append(Fault(where, name, _NOT_A_SUBDOMAIN))
    return found


def faults(meta: Object) -> list[Fault]:
    """Return the faults of labels and annotations."""
    found = []
    for key, value in sorted(meta.get("labels", {}).items()):
        found += _key("metadata.labels", key, key)
        if len(value) > 63 or not re.fullmatch(f"({_WORD})?", value):
            found.append(Fault("metadata.labels", value, _NOT_A_VALUE))
    for key in sorted(meta.get("annotations", {})):
        found += _key("metadata.annotations", key, key.lower())
    return found


def _key(where: str, shown: str, key: str) -> list[Fault]:
    prefix, slash, name = key.rpartition("/")
    if len(name) > 63 or not name or (slash and not re.fullmatch(_SUBDOMAIN, prefix)):
        raise Unknown(f"the model of Kubernetes does not validate the key {shown!r}")
    return [] if re.fullmatch(_WORD, name) else [Fault(where, shown, _NOT_A_KEY)]
