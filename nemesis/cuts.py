"""Facts about faults that cut links, given as `arguments.links`: pairs of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def links(targets: list[str], arguments: dict[str, Any]) -> list[list[str]]:
    """Return the pairs of nodes that a partition separates."""
    return [list(link) for link in arguments.get("links") or ()]


def impairs(targets: list[str], arguments: dict[str, Any]) -> list[str]:
    """Return the nodes on the small side of the cut: without them every remaining link is open.

    If several smallest sets of nodes are such a side, return all of their nodes, as with both ends
    of a single link.
    """
    cut = links(targets, arguments)
    if not cut:
        return targets
    size = next(size for size in range(1, len(cut) + 1) if _covers(cut, size))
    return sorted({node for side in _covers(cut, size) for node in side})


def _covers(cut: Sequence[Sequence[str]], size: int) -> list[set[str]]:
    """Return the smallest sets of at most `size` nodes that contain an end of every link."""
    if not cut:
        return [set()]
    if not size:
        return []
    near, far = cut[0]
    return [
        {node, *rest}
        for node in dict.fromkeys((near, far))
        for rest in _covers([link for link in cut if node not in link], size - 1)
    ]
