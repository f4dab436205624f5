"""The requirements of a user lock are installed here, for the nodes, and shipped with its files."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from fencepost.harness.clients.client_program import command
from fencepost.harness.errors import BadArguments
from fencepost.harness.userlock import requirements
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.node.places import CODE_PATH
from tests.fuzz import odd

pytestmark = pytest.mark.slow


def wheel(folder, name="helper", tag="py3-none-any"):
    path = folder / f"{name}-1.2-{tag}.whl"
    info = f"{name}-1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "VALUE = 7\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        tags = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_a_requirements_file_is_installed_and_goes_with_the_lock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mylock.py").write_text("import helper\nclass MyLock: ...\n")
    path = wheel(tmp_path)
    needs = tmp_path / "requirements.txt"
    needs.write_text(f"--no-index\n{path}\n")
    _, own = resolve("mylock.py:MyLock", LockRequest("redis:1", requirements=needs))
    assert own.files["mylock.py"] == tmp_path / "mylock.py"
    assert own.files["site-packages/helper/__init__.py"].read_text() == "VALUE = 7\n"
    assert own.packages == ["helper==1.2"]
    assert own.to_json()["packages"] == ["helper==1.2"]
    kept = own.kept(tmp_path / "run")
    assert kept.packages == ["helper==1.2"]
    assert kept.files["site-packages/helper/__init__.py"].is_relative_to(tmp_path / "run" / "own")


NO_FILES = [kind for kind in odd.ODD if kind not in ("an empty file", "a folder")]


@pytest.mark.parametrize("kind", NO_FILES)
def test_requirements_of_an_odd_type_are_refused_before_pip_reads_them(tmp_path, monkeypatch, kind):
    if kind == "a device" and os.geteuid() != 0:
        pytest.skip("only root can make a device")
    monkeypatch.setattr(requirements, "_pip", lambda what, words: pytest.fail("pip was asked"))
    given = tmp_path / "given"
    odd.ODD[kind](given)
    said = "not a regular file|no such file|is larger than|cannot be read"
    with pytest.raises(BadArguments, match=f"^requirements {given}: .*({said})"):
        requirements.installed(given)


def test_installed_requirements_precede_the_client_s_own_packages(tmp_path):
    lock = given_lock_type(tmp_path)
    assert f"PYTHONPATH={CODE_PATH}" in command(lock)
    words = command(lock, "/own/site-packages")
    assert words[words.index("launch") + 1 :][:2] == (
        "env",
        f"PYTHONPATH={CODE_PATH}:/own/site-packages",
    )


def given_lock_type(folder):
    (folder / "l.py").write_text("class L: ...\n")
    name, own = resolve(f"{folder}/l.py:L", LockRequest("redis:1"))
    return own.lock_type(name, {})


def test_pip_is_asked_once_as_long_as_nothing_has_changed(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(requirements, "_pip", lambda what, words: asked.append(words))
    needs = tmp_path / "requirements.txt"
    for text in ("one==1\n", "one==1\n", "one==2\n"):
        needs.write_text(text)
        requirements.installed(needs)
    assert len(asked) == 2
    assert asked[0][-2:] == ["-r", str(needs)]


def test_a_project_s_folder_is_made_into_a_wheel_first(tmp_path, monkeypatch):
    asked = []

    def pip(what, words):
        asked.append(words)
        if words[0] == "wheel":
            wheel(Path(words[words.index("-w") + 1]))

    monkeypatch.setattr(requirements, "_pip", pip)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'helper'\n")
    requirements.installed(tmp_path)
    assert [words[0] for words in asked] == ["wheel", "install"]
    assert asked[1][-1].endswith("helper-1.2-py3-none-any.whl")


def test_a_source_distribution_is_built_into_a_wheel_here(tmp_path, monkeypatch):
    asked = []

    def pip(what, words):
        asked.append(words)
        if len(asked) == 1:
            raise BadArguments("there is no wheel")

    monkeypatch.setattr(requirements, "_pip", pip)
    needs = tmp_path / "requirements.txt"
    needs.write_text("of-source==1\n")
    requirements.installed(needs)
    assert [words[0] for words in asked] == ["install", "wheel", "install"]
    assert "--find-links" in asked[2]


def test_a_requirement_that_cannot_be_installed_is_named(tmp_path):
    needs = tmp_path / "requirements.txt"
    needs.write_text("--no-index\nno-such-helper==1\n")
    why = (
        r"requirements.txt cannot be installed for the nodes \(Python 3.11, .*, wheels only\): "
        "Could not find a version that satisfies the requirement no-such-helper==1"
    )
    with pytest.raises(BadArguments, match=why):
        requirements.installed(needs)


def test_a_wheel_for_another_machine_is_refused(tmp_path):
    path = wheel(tmp_path, tag="cp27-cp27m-win32")
    with pytest.raises(BadArguments, match="is not a supported wheel on this platform"):
        requirements.installed(path)


@pytest.mark.parametrize(
    ("name", "why"),
    [("nowhere.txt", "no such file"), ("", "the folder is not a Python project")],
)
def test_a_requirement_that_is_neither_a_file_nor_a_project_is_refused(tmp_path, name, why):
    with pytest.raises(BadArguments, match=why):
        requirements.installed(tmp_path / name)
