"""Puts parts on the nodes' image that take long to build, and that few kinds of servers need.

Each such layer is an image of its own, named by a hash of its Dockerfile. It is built when its kind
of servers is first asked for, and kept while other parts of the nodes' image change.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from fencepost.harness.cluster import image
from fencepost.harness.cluster.docker_engine import Say
from fencepost.harness.servers.kinds import KINDS
from fencepost.node.kind import Layer


def of(kinds: Iterable[str]) -> dict[str, Layer]:
    """Return the layers that these kinds of servers need, by their kind."""
    known = sorted(set(kinds) & set(KINDS))
    return {name: layer for name in known if (layer := KINDS[name].image.layer) is not None}


def built(base: str, kinds: Iterable[str]) -> str | None:
    """Return the name of the nodes' image with the layers that these kinds of servers need; None
    if one must be built."""
    name = [base, *(above for _, _, above in _named(base, kinds))][-1]
    return name if name == base or image.there(name) else None


def ensure(base: str, kinds: Iterable[str], say: Say) -> str:
    """Return the name of the nodes' image with the layers that these kinds of servers need; build
    missing ones.

    Raises:
        Crashed: a build failed; the text has the end of its output.
    """
    name = base
    for kind, layer, above in _named(base, kinds):
        below, name = name, above
        if image.there(name):
            continue
        stage = f"fencepost-layer:{kind}-{_hash(layer.stage)}"
        if not image.there(stage):
            say(f"Building {layer.what}")
            _build(stage, image.pinned(layer.stage))
        _build(name, f"FROM {below}\n" + layer.lines.replace("@layer", stage))
    return name


def _named(base: str, kinds: Iterable[str]) -> Iterator[tuple[str, Layer, str]]:
    """Yield each kind with a layer, the layer, and the name of the image with it on top."""
    name = base
    for kind, layer in of(kinds).items():
        name = f"{name}-{kind}-{_hash(layer.stage + layer.lines)}"
        yield kind, layer, name


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _build(name: str, dockerfile: str) -> None:
    with tempfile.TemporaryDirectory(prefix="fencepost-layer-") as folder:
        Path(folder, "Dockerfile").write_text(dockerfile)
        image.build(name, folder)
