"""Downloads are pinned by hash, and text that a person enters never becomes a command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from fencepost.harness.cluster import image, libraries, nodecode
from fencepost.harness.cluster.image import COMPOSE
from fencepost.harness.package import PACKAGE
from tests.snippets import step_of_the_action

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
    source = tmp_path / "home" / "wheels" / "old-1.0.tar.gz"
    monkeypatch.setattr(libraries, "download", lambda pins, wheels: source.touch())
    libraries._python(PINS[0], tmp_path / "home")
    pip, npm, wheel = ran
    assert "--no-build-isolation" in wheel
    assert "--require-hashes" in pip
    assert npm[:2] == ["npm", "ci"] and (tmp_path / "node-redlock" / "package-lock.json").exists()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_keeps_a_credential_or_puts_an_input_into_a_command(workflow):
    text = workflow.read_text()
    checkouts = re.findall(r"- uses: actions/checkout@\S+.*\n(?: {8}.*\n)*", text)
    assert checkouts and all("persist-credentials: false" in one for one in checkouts)
    commands = re.findall(r"run: (?:\|\n(?: {10}.*\n)+|.*\n)", text)
    assert commands and not any("${{" in one for one in commands)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_known_by_its_commit_and_says_which_release_that_is(workflow):
    used = re.findall(r"uses: *(.*)", workflow.read_text())
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


def test_the_action_installs_the_pinned_versions_by_their_hashes():
    pips = [line for line in step_of_the_action("install").splitlines() if " install " in line]
    assert len(pips) == 2
    assert "--require-hashes" in pips[0] and "requirements.lock" in pips[0]
    assert "--no-deps" in pips[1] and "--no-build-isolation" in pips[1]
    assert "\nsetuptools==" in (ROOT / "requirements.lock").read_text()


def test_this_package_is_built_by_the_setuptools_of_the_lock():
    """A build in isolation takes that version too. It has no hash, which pip cannot be given."""
    (pin,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    locked = re.search(r"(?m)^setuptools==[\d.]+", (ROOT / "requirements.lock").read_text())
    assert locked and pin == locked[0]
    texts = [path.read_text() for path in (ROOT / "Makefile", ROOT / "action.yml", *WORKFLOWS)]
    installs = re.findall(r'pip"? install .*(?:-e \.|"\$ACTION")', "\n".join(texts))
    assert len(installs) == 2 and all("--no-build-isolation" in one for one in installs)


def test_no_version_with_a_known_hole_in_it_is_admitted():
    """Starlette before 0.49.1 has CVE-2025-62727, Jinja2 before 3.1.6 several of its sandbox."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for each in extras.values() for one in each)]
    bounds = {name: least for name, _, least in (one.partition(">=") for one in wanted)}
    assert (bounds["starlette"], bounds["jinja2"]) == ("0.49.1", "3.1.6")


@pytest.fixture
def action(tmp_path):
    """Run the action's test with a fake fencepost; return the exit code and its arguments."""
    bin = tmp_path / "fencepost" / "bin"
    bin.mkdir(parents=True)
    (bin / "fencepost").write_text(f"#!/bin/sh\nprintf '<%s>' \"$@\" > {tmp_path}/words\nexit 2\n")
    (bin / "fencepost").chmod(0o755)
    given = {"TIME": "5s", "SEED": "", "FAIL_ON": "all", "RUNNER_TEMP": str(tmp_path)}
    outputs = {"GITHUB_STEP_SUMMARY": "summary", "GITHUB_OUTPUT": str(tmp_path / "output")}

    def run(test):
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step_of_the_action("test")],
            env=os.environ | given | outputs | {"TEST": test},
            capture_output=True,
            check=False,
        )
        assert (tmp_path / "output").read_text() == f"exit-code={done.returncode}\n"
        words = tmp_path / "words"
        return done.returncode, words.read_text() if words.exists() else ""

    return run


@pytest.mark.parametrize("quote", ["'", '"'])
def test_the_action_refuses_a_test_whose_quote_is_not_closed(action, quote):
    """Otherwise the words after it would be left out, and the run be another one."""
    assert action(f"lock.py:L --servers redis:1 -o note=it{quote}s --faults kill") == (254, "")


def test_the_action_splits_a_test_as_a_shell_does(action):
    code, words = action("lock.py:L -o 'note=a  b' \n  --faults \"kill\" -o $HOME ''")
    assert code == 2
    assert words.startswith(
        "<test><lock.py:L><-o><note=a  b><--faults><kill><-o><$HOME><><--time><5s>"
    )


def test_workflows_match_the_schema_of_workflows():
    program = Path(sys.executable).with_name("check-jsonschema")
    if not program.exists():
        pytest.skip("check-jsonschema is not installed: make install")
    command = [program, "--builtin-schema", "vendor.github-workflows", *WORKFLOWS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


def test_the_image_is_published_when_anything_changes_that_its_tag_is_a_hash_of():
    text = (ROOT / ".github" / "workflows" / "image.yml").read_text()
    paths = re.findall(r'      - "(.+)"', text.partition("paths:")[2].partition("workflow_")[0])
    modules = [name for name in nodecode.files() if name.endswith(".py")]
    found = {
        source
        for name in (module.removeprefix("lib/fencepost/") for module in modules)
        for source in (ROOT / name, ROOT / "src" / "fencepost" / name)
        if source.is_file() and source.stat().st_size
    }
    found |= {PACKAGE / one for one in libraries.inputs()}
    found = {one.resolve().relative_to(ROOT) for one in found if one.name != "__init__.py"}
    assert len(found) > 40
    patterns = [path.replace("**", "*") for path in paths]
    missing = [one for one in found if not any(fnmatch(str(one), each) for each in patterns)]
    assert missing == []


class Engine:
    """An engine whose registry serves the base image under these digests."""

    def __init__(self, digests):
        self.images = self
        self.api = self
        self.attrs, self.labels = {"RepoDigests": digests}, {}

    def get(self, name):
        return self

    def tag(self, repository, tag):
        pass

    def close(self):
        pass


@pytest.mark.parametrize("digests", [["debian@sha256:0123"], [], None])
def test_the_image_is_built_on_the_base_that_was_pulled_by_its_digest(monkeypatch, digests):
    built = {}

    def must(command, what, environment=None):
        built["labels"] = [word for word in command if word.startswith("fencepost.base=")]
        built["from"] = re.findall(r"FROM (\S+)", (Path(command[-1]) / "Dockerfile").read_text())

    monkeypatch.setattr(image.docker_calls, "client", lambda: Engine(digests))
    monkeypatch.setattr(image, "_must", must)
    monkeypatch.setattr(image.libraries, "download", lambda *_: None)
    monkeypatch.setattr(image.libraries, "fetch", lambda *_: {})
    monkeypatch.setattr(
        image.docker_calls, "command", lambda *_, **__: subprocess.CompletedProcess([], 1)
    )
    image._build("fencepost-node:1", lambda words: None)
    wanted = digests[0] if digests else "debian:bookworm-slim"
    assert wanted in built["from"]
    assert digests is None or not digests or image.BASE not in built["from"]
    (label,) = built["labels"]
    assert label == f"fencepost.base={wanted}{'' if digests else ', made here by debootstrap'}"


def test_the_libraries_are_fetched_while_the_base_of_the_image_is_made(monkeypatch):
    fetches, made = threading.Event(), []
    monkeypatch.setattr(image.docker_calls, "client", lambda: Engine([]))
    monkeypatch.setattr(image, "_must", lambda *_: None)
    monkeypatch.setattr(image.libraries, "download", lambda *_: fetches.set())
    monkeypatch.setattr(image.libraries, "fetch", lambda *_: {})
    monkeypatch.setattr(image, "_base", lambda say: made.append(fetches.wait(60)))
    monkeypatch.setattr(
        image.docker_calls, "command", lambda *_, **__: subprocess.CompletedProcess([], 1)
    )
    image._build("fencepost-node:1", lambda words: None)
    assert made == [True]


@pytest.fixture
def make_nightly(tmp_path):
    """Run `make nightly` with a fake fencepost that prints its arguments."""
    bin, ready = tmp_path / "bin", tmp_path / "ready"
    bin.mkdir()
    ready.touch()
    (bin / "fencepost").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/words\n")
    (bin / "fencepost").chmod(0o755)
    # A make that runs these tests exports its own settings.
    makes = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "ARGS")
    bare = {name: value for name, value in os.environ.items() if name not in makes}
    settings = [f"BIN={bin}", f"READY={ready}"]

    def make(seed):
        subprocess.run(
            ["make", "-s", "-C", str(ROOT), "nightly", "BUDGET=6m", *settings],
            env=bare | {"SEED": seed},
            capture_output=True,
            check=False,
        )
        words = (tmp_path / "words").read_text().split("\n")[:-1]
        assert words[:4] == ["nightly", "run", "--budget", "6m"]
        return words[4:]

    return make


@pytest.mark.parametrize("seed", ["7", "7; touch {}/ran", "$(touch {}/ran)", "`touch {}/ran`"])
def test_a_seed_is_one_word_and_runs_nothing(make_nightly, tmp_path, seed):
    seed = seed.format(tmp_path)
    assert make_nightly(seed) == ["--seed", seed]
    assert not (tmp_path / "ran").exists()


def test_without_a_seed_none_is_given(make_nightly):
    assert make_nightly("") == []
