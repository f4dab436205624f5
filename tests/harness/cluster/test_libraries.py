"""A lock whose library is missing on the nodes is refused before anything starts."""

from __future__ import annotations

import pytest

from fencepost.harness.cluster import image, libraries
from fencepost.harness.errors import BadArguments, Crashed


def holding(monkeypatch, label):
    monkeypatch.setattr(image, "held", lambda name: set(label.split(",")))


def test_libraries_in_the_image_are_accepted(monkeypatch):
    holding(monkeypatch, "kazoo,pottery")
    image.must_hold("fencepost-node:1", ["kazoo"])
    image.must_hold("fencepost-node:1", [])


def test_missing_libraries_are_bad_arguments_with_a_remedy_and_the_available_ones(monkeypatch):
    holding(monkeypatch, "pottery,kazoo")
    with pytest.raises(BadArguments) as error:
        image.must_hold("fencepost-node:1", ["node-redlock"])
    assert str(error.value) == (
        "node-redlock is not in the nodes' image: it could not be fetched during the build. Run "
        "`fencepost cluster build` to retry and see the error. In the image: kazoo, pottery"
    )


def test_an_image_without_a_label_holds_none(monkeypatch):
    holding(monkeypatch, "")
    with pytest.raises(BadArguments, match="In the image: none"):
        image.must_hold("fencepost-node:1", ["kazoo"])


def test_a_library_that_cannot_be_downloaded_is_omitted_and_the_others_are_not(
    monkeypatch, tmp_path
):
    def python(pins, home):
        if pins.stem == "kazoo":
            raise Crashed("no index answers")
        home.mkdir()

    monkeypatch.setattr(libraries, "_python", python)
    monkeypatch.setattr(libraries, "_node", lambda package, home, say: home.mkdir())
    said = []
    left_out = libraries.fetch(tmp_path, said.append)
    assert left_out == {"kazoo": "no index answers"}
    assert said == ["The image is built without kazoo: no index answers"]
    fetched = {path.name for path in (tmp_path / "libraries").iterdir()}
    assert fetched == set(libraries.names()) - {"kazoo", "curator"}
    assert (tmp_path / "curator" / "Worker.java").is_file()


def test_without_npm_its_library_is_omitted_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(libraries.shutil, "which", lambda name: None)
    monkeypatch.setattr(libraries, "is_debian", lambda: False)
    (package,) = libraries.PINS.glob("*/package.json")
    with pytest.raises(Crashed, match="npm is not installed here"):
        libraries._node(package, tmp_path / "node-redlock", print)
