"""What a model does not have."""

from __future__ import annotations


class Unknown(Exception):
    """A lock asks for what a model does not have: it cannot be simulated, nothing is guessed."""
