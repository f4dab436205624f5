"""The error for features that a model lacks."""

from __future__ import annotations


class Unknown(Exception):
    """A lock uses a feature that a model lacks; models never guess."""
