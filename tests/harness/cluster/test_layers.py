"""Layers of the nodes' image: built once, when nodes that need them are first asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from fencepost.harness.cluster import image, layers
from fencepost.harness.errors import Crashed
from fencepost.harness.servers.kinds import KINDS

BASE = "fencepost-node:0123"
KINDS_OF_NODES = ["kube-apiserver", "kubernetes", "redis", "client"]


@pytest.fixture
def docker(monkeypatch):
    """An engine that keeps the Dockerfile of each image."""
    held = {}

    def build(name, context, *options):
        held[name] = Path(context, "Dockerfile").read_text()

    monkeypatch.setattr(image, "there", held.__contains__)
    monkeypatch.setattr(image, "build", build)
    monkeypatch.setattr(image, "_digest", lambda: "debian@sha256:1")
    return held


def test_nodes_that_need_no_layer_have_the_plain_image(docker):
    assert layers.ensure(BASE, ["redis", "kubernetes", "client"], print) == BASE
    assert layers.built(BASE, ["redis", "kubernetes", "client"]) == BASE
    assert layers.built(BASE, KINDS_OF_NODES) is None
    assert docker == {}


def test_a_layer_is_built_once_and_put_on_each_new_image_of_the_nodes(docker):
    said = []
    name = layers.ensure(BASE, KINDS_OF_NODES, said.append)
    assert name.startswith(f"{BASE}-kube-apiserver-")
    stage, nodes = docker
    assert docker[stage].startswith("FROM debian@sha256:1\n")
    assert docker[nodes].startswith(f"FROM {BASE}\nCOPY --from={stage} /kube-apiserver ")
    assert layers.ensure(BASE, KINDS_OF_NODES, said.append) == name
    assert layers.built(BASE, KINDS_OF_NODES) == name
    layers.ensure("fencepost-node:4567", KINDS_OF_NODES, said.append)
    assert len(docker) == 3 and len(said) == 1
    assert "kube-apiserver" in said[0]


def test_a_changed_layer_is_built_anew(docker, monkeypatch):
    before = layers.ensure(BASE, KINDS_OF_NODES, print)
    kind = KINDS["kube-apiserver"]
    layer = dataclasses.replace(kind.image.layer, stage=kind.image.layer.stage + "RUN true\n")
    changed = dataclasses.replace(kind, image=dataclasses.replace(kind.image, layer=layer))
    monkeypatch.setattr(layers, "KINDS", {"kube-apiserver": changed})
    assert layers.ensure(BASE, KINDS_OF_NODES, print) != before
    assert len(docker) == 4


def test_a_failed_build_leaves_no_image_of_nodes(docker, monkeypatch):
    def fails(name, context, *options):
        raise Crashed("docker build failed with exit code 1")

    monkeypatch.setattr(image, "build", fails)
    with pytest.raises(Crashed, match="docker build failed"):
        layers.ensure(BASE, KINDS_OF_NODES, print)
    assert docker == {}


def test_no_layer_is_part_of_the_plain_image():
    assert "kube-apiserver" not in image.dockerfile()
