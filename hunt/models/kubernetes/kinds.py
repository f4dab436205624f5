"""The kinds of objects that the model has."""

from __future__ import annotations

from dataclasses import dataclass


class Malformed(Exception):
    """The object cannot be decoded."""


@dataclass(frozen=True)
class Kind:
    """A kind of objects.

    `unconditional`: an update needs no resourceVersion. `created_by_put`: an update of an object
    that does not exist creates it (strategy.go of each kind).
    """

    name: str
    plural: str
    group: str
    version: str
    fields: tuple[str, ...]
    unconditional: bool
    created_by_put: bool

    @property
    def resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        return f"{self.name}.{self.group}" if self.group else self.name


KINDS = {
    "/apis/coordination.k8s.io/v1/leases": Kind(
        "Lease", "leases", "coordination.k8s.io", "coordination.k8s.io/v1", ("spec",), False, True
    ),
    "/api/v1/configmaps": Kind(
        "ConfigMap", "configmaps", "", "v1", ("data", "binaryData", "immutable"), True, False
    ),
    "/api/v1/endpoints": Kind("Endpoints", "endpoints", "", "v1", ("subsets",), True, True),
}
"""By the path, without the namespace."""
