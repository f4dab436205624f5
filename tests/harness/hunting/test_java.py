"""A Java library's client is compiled here. Without a compiler or a jar it is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting import java
from fencepost.workloads.locks.registry import LOCKS

ON_NODES = "/opt/fencepost/libraries/curator"
JARS = Path("/usr/share/java")


@pytest.fixture(autouse=True)
def _compiles_again():
    java._compiled.cache_clear()
    yield
    java._compiled.cache_clear()


@pytest.fixture
def words(tmp_path):
    """Return the command of a program on nodes, with jars that exist here."""
    jars = [tmp_path / name for name in ("one.jar", "two.jar")]
    for jar in jars:
        jar.touch()
    return ("java", "-Xmx64m", "-cp", f"{ON_NODES}:{jars[0]}:{jars[1]}", "Worker")


def test_every_lock_on_the_jvm_names_its_classes_as_the_nodes_have_them():
    mine = [lock for lock in LOCKS.values() if lock.program[:1] == ("java",)]
    assert {lock.name for lock in mine} >= {"curator", "curator-latch", "curator-selector"}
    for lock in mine:
        path = lock.program[lock.program.index("-cp") + 1]
        assert f"/opt/fencepost/libraries/{lock.library}" in path.split(":")


def test_the_classes_are_compiled_once_and_come_first_in_the_path(words, monkeypatch):
    asked = []

    def run(command, **_):
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(shutil, "which", lambda word: f"/usr/bin/{word}")
    monkeypatch.setattr(subprocess, "run", run)
    made = [java.command("curator", "curator", words, ON_NODES) for _ in range(2)]
    assert made[0] == made[1] and len(asked) == 1
    folder, *jars = made[0][3].split(":")
    assert Path(folder).is_dir() and jars == words[3].split(":")[1:]
    assert made[0][:3] == words[:3] and made[0][4:] == words[4:]
    compiled = {Path(word).name for word in asked[0] if word.endswith(".java")}
    assert {"Worker.java", "Latch.java", "Selector.java", "Fencepost.java"} <= compiled
    assert asked[0][asked[0].index("-d") + 1] == folder


@pytest.mark.parametrize("lacks", ["java", "javac", "two.jar"])
def test_a_machine_without_the_compiler_or_a_jar_is_told_what_to_install(
    words, tmp_path, monkeypatch, lacks
):
    monkeypatch.setattr(shutil, "which", lambda word: None if word == lacks else f"/usr/bin/{word}")
    (tmp_path / lacks).unlink(missing_ok=True)
    with pytest.raises(BadArguments, match=f"{lacks} is not on this machine. Install Debian.s"):
        java.command("curator", "curator", words, ON_NODES)


def test_sources_that_do_not_compile_are_told_with_the_compilers_words(words, monkeypatch):
    def run(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "error: cannot find symbol")

    monkeypatch.setattr(shutil, "which", lambda word: f"/usr/bin/{word}")
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(BadArguments, match="does not compile here: error: cannot find symbol"):
        java.command("curator", "curator", words, ON_NODES)
