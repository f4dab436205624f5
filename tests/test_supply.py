"""What comes from elsewhere is known by its hash, and what a person types is no command."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from fencepost.harness.cluster import libraries
from fencepost.harness.cluster.image import COMPOSE

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINS = [COMPOSE / "requirements.txt", *sorted(libraries.PINS.glob("*.txt"))]
LOCKS = sorted(libraries.PINS.glob("*/package-lock.json"))


@pytest.mark.parametrize("pins", PINS, ids=lambda path: path.stem)
def test_every_wheel_of_the_image_has_its_version_and_its_hashes(pins):
    text = re.sub(r"(?m)^#.*\n", "", pins.read_text()).replace("\\\n", "")
    for line in text.splitlines():
        package, *hashes = line.split()
        assert re.fullmatch(r"[\w.-]+==[\w.]+", package)
        assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)
    alone = libraries.without_hashes(pins)
    assert "hash" not in alone and "\\" not in alone
    assert alone.count("==") == text.count("==")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_every_package_of_npm_has_its_integrity_and_no_address(lock):
    found = json.loads(lock.read_text())["packages"]
    wanted = json.loads(lock.with_name("package.json").read_text())["dependencies"]
    assert found.pop("")["dependencies"] == wanted
    assert {name.removeprefix("node_modules/"): one["version"] for name, one in found.items()} == (
        wanted
    )
    assert all(one["integrity"].startswith("sha512-") for one in found.values())
    assert "://" not in lock.read_text()


def test_nothing_is_downloaded_without_a_hash(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(libraries, "_must", lambda command, what: ran.append(command))
    libraries.download(PINS[0], tmp_path)
    (package,) = libraries.PINS.glob("*/package.json")
    monkeypatch.setattr(libraries.shutil, "which", lambda name: name)
    libraries._node(package, tmp_path / "node-redlock", print)
    pip, npm = ran
    assert "--require-hashes" in pip
    assert npm[:2] == ["npm", "ci"] and (tmp_path / "node-redlock" / "package-lock.json").exists()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_keeps_a_credential_or_puts_an_input_into_a_command(workflow):
    text = workflow.read_text()
    checkouts = re.findall(r"- uses: actions/checkout@\S+\n(?: {8}.*\n)*", text)
    assert checkouts and all("persist-credentials: false" in one for one in checkouts)
    commands = re.findall(r"run: (?:\|\n(?: {10}.*\n)+|.*\n)", text)
    assert commands and not any("${{" in one for one in commands)


@pytest.fixture
def make_nightly(tmp_path):
    """`make nightly` with a command in the place of fencepost that tells its words."""
    bin, ready = tmp_path / "bin", tmp_path / "ready"
    bin.mkdir()
    ready.touch()
    (bin / "fencepost").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/words\n")
    (bin / "fencepost").chmod(0o755)
    settings = [f"BIN={bin}", f"READY={ready}", f"SUMMARY={tmp_path}/summary"]

    def make(seed):
        (tmp_path / "summary").unlink(missing_ok=True)
        subprocess.run(
            ["make", "-s", "-C", str(ROOT), "nightly", *settings],
            env=os.environ | {"SEED": seed},
            capture_output=True,
            check=False,
        )
        return (tmp_path / "words").read_text().split("\n")[4:-1]

    return make


@pytest.mark.parametrize("seed", ["7", "7; touch {}/ran", "$(touch {}/ran)", "`touch {}/ran`"])
def test_a_seed_is_one_word_and_runs_nothing(make_nightly, tmp_path, seed):
    seed = seed.format(tmp_path)
    assert make_nightly(seed) == ["--seed", seed]
    assert not (tmp_path / "ran").exists()


def test_without_a_seed_none_is_given(make_nightly):
    assert make_nightly("") == []
