"""A client's program in an image of its user: which images are refused, and its container."""

from __future__ import annotations

import io
import subprocess
import tarfile
from types import SimpleNamespace

import pytest
from docker.errors import ImageNotFound

from fencepost.harness.cluster import clientimage
from fencepost.harness.cluster import labels as ours
from fencepost.harness.cluster.clientimage import Place, must_serve, spawning
from fencepost.harness.errors import BadArguments

THERE = {"mine:1": "amd64", "other:1": "riscv64"}


class Engine:
    """An engine that has some images, and creates a container without starting it."""

    def __init__(self):
        self.images = self.containers = self
        self.made, self.put, self.removed = None, None, 0
        self.id = "4711"

    def get(self, name):
        if name not in THERE:
            raise ImageNotFound(name)
        return SimpleNamespace(attrs={"Architecture": THERE[name]})

    def create(self, image, **settings):
        self.made = settings | {"image": image}
        return self

    def put_archive(self, path, archive):
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            self.put = [path + name for name in tar.getnames()]

    def remove(self, force):
        self.removed += 1

    def close(self):
        pass


@pytest.fixture
def engine(monkeypatch):
    made = Engine()
    monkeypatch.setattr(clientimage.docker_calls, "client", lambda: made)
    monkeypatch.setattr(clientimage.platform, "machine", lambda: "x86_64")
    return made


def answering(monkeypatch, code):
    ran = []

    def command(words, *_, **__):
        ran.append(words)
        return subprocess.CompletedProcess(words, code)

    monkeypatch.setattr(clientimage.docker_calls, "command", command)
    return ran


def test_an_image_only_has_to_exist_and_be_for_this_machine(engine, monkeypatch):
    ran = answering(monkeypatch, 127)
    must_serve("mine:1", python=False)
    assert ran == []


@pytest.mark.parametrize(
    "image, says",
    [
        (
            "none:1",
            "--client-image: this machine has no image none:1: pull it (`docker pull`) or build it",
        ),
        ("other:1", "--client-image: other:1 is for riscv64, and this machine is amd64"),
    ],
)
def test_an_image_that_cannot_be_used_is_refused_with_the_reason(engine, image, says):
    with pytest.raises(BadArguments) as error:
        must_serve(image, python=False)
    assert str(error.value) == says


def test_a_class_in_python_needs_one_in_its_image(engine, monkeypatch):
    ran = answering(monkeypatch, 0)
    must_serve("mine:1", python=True)
    ((*_, image, _, program),) = ran
    assert image == "mine:1" and "(3, 9)" in program
    answering(monkeypatch, 127)
    with pytest.raises(BadArguments, match="mine:1 has no python3"):
        must_serve("mine:1", python=True)


@pytest.fixture
def spawned(engine, monkeypatch):
    """Start a program in a container: a local program replaces `docker start`."""
    started = []
    monkeypatch.setattr(
        clientimage.subprocess,
        "Popen",
        lambda words, **_: started.append(words) or SimpleNamespace(stdin=0, stdout=1, stderr=2),
    )
    with io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("var/lib/fencepost/own/worker"))
        archive = buffer.getvalue()
    spawn = spawning(engine, Place("client-1", "77", "fencepost-2"), "mine:1", archive)
    return spawn(["./worker", "--fast"]), started


def test_its_container_joins_the_node_s_network_and_processes_and_has_the_files(engine, spawned):
    _, ((*_, id),) = spawned
    assert id == engine.id
    assert (engine.made["network_mode"], engine.made["pid_mode"]) == ("container:77",) * 2
    assert (engine.made["entrypoint"], engine.made["command"]) == (["./worker"], ["--fast"])
    assert engine.made["auto_remove"] and engine.made["stdin_open"]
    assert engine.made["pids_limit"] and engine.made["mem_limit"]
    assert engine.made["security_opt"] == ["no-new-privileges:true"]
    assert engine.put == ["/var/lib/fencepost/own/worker"]


def test_its_container_has_fencepost_s_label_and_its_project_s(engine, spawned):
    labels = engine.made["labels"]
    assert ours.LABELS.items() <= labels.items()
    assert labels["com.docker.compose.project"] == "fencepost-2"
    assert labels[ours.PROGRAM_OF] == "client-1"


def test_the_end_of_a_program_is_reported_as_by_a_pump(tmp_path, monkeypatch):
    (tmp_path / "docker").write_text("#!/bin/sh\necho said\nexit $CODE\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for code, told in (("3", b'said\n{"control":"over","code":3}\n'), ("125", b"said\n")):
        monkeypatch.setenv("CODE", code)
        assert subprocess.check_output(["sh", "-c", clientimage._ATTACHED, "sh", "1"]) == told
