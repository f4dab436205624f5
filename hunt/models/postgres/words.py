"""Describes a message in a few words."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.words import shortened


def asked(command: tuple[Any, ...]) -> str:
    if command[0] in ("query", "parse"):
        return shortened(command[-1] if command[0] == "query" else command[2])
    return str(command[0])


def answered(command: tuple[Any, ...], reply: Any) -> str:
    return "answer"
