"""The hunt's model of a kind of server, which knows what clients of such servers send."""

from __future__ import annotations

from fencepost.harness.servers.kinds import KINDS
from fencepost.hunt.models.model import Model
from fencepost.hunt.models.registry import MODELS


def model_of(role: str) -> Model | None:
    """Return the model of the servers in this role; None if there is none."""
    return MODELS.get(KINDS[role].model) if role in KINDS else None


def counts_steps(role: str) -> bool:
    """Return whether each request to such servers is a step of an op of the lock."""
    model = model_of(role)
    return model is not None and model.steps


def passes_a_gate(role: str) -> bool:
    """Return whether a gate on a client's node knows the requests to such servers, and can stop a
    program at each (workloads/client/gate.py)."""
    model = model_of(role)
    return model is not None and model.gate
