"""Fetches the lock libraries under test, each into its own folder.

Within the build of an image, pip and npm may not reach their index, so the packages are put into
the build's context. A library that cannot be fetched is left out, because other locks do not need
it. The image's label lists its libraries, and image.py checks it before a run.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fencepost.harness.cluster import docker_calls
from fencepost.harness.cluster.docker_engine import Say, install, is_debian
from fencepost.harness.errors import Crashed
from fencepost.harness.package import PACKAGE
from fencepost.workloads.locks.registry import LOCKS

PINS = PACKAGE / "compose" / "libraries"
"""NAME.txt: the requirements of a Python library; NAME/package.json: those of an npm library. Both
have a hash of each file to download (`package-lock.json`), and no address."""
CURATOR = (
    *sorted((PACKAGE / "sdk" / "clients" / "curator").glob("*.java")),
    PACKAGE / "sdk" / "java" / "Fencepost.java",
)
"""The client of Debian's Curator, compiled when the image is built."""
# The download or the build of one library, also on a slow line.
_FETCH_S = 900.0


def inputs() -> Iterator[Path]:
    """Yield every file of the repository that determines the image's libraries."""
    yield from sorted(PINS.glob("*.txt"))
    yield from sorted(PINS.glob("*/package*.json"))
    yield from CURATOR


def fetch(context: Path, say: Say) -> dict[str, str]:
    """Put libraries into a build's context, as libraries/NAME; return the errors by library."""
    folder = context / "libraries"
    folder.mkdir()
    (context / "curator").mkdir()
    for source in CURATOR:
        shutil.copy(source, context / "curator")
    python = sorted(PINS.glob("*.txt"))
    packages = sorted(PINS.glob("*/package.json"))
    with ThreadPoolExecutor(4) as pool:
        fetched = {pins.stem: pool.submit(_python, pins, folder / pins.stem) for pins in python}
        fetched |= {
            package.parent.name: pool.submit(_node, package, folder / package.parent.name, say)
            for package in packages
        }
        left_out: dict[str, str] = {}
        for name, task in fetched.items():
            try:
                task.result()
            except Crashed as error:
                left_out[name] = str(error)
                shutil.rmtree(folder / name, ignore_errors=True)
                say(f"The image is built without {name}: {error}")
    return left_out


def names() -> list[str]:
    """Return every library that an image can contain."""
    return [
        *(pins.stem for pins in sorted(PINS.glob("*.txt"))),
        *(package.parent.name for package in sorted(PINS.glob("*/package.json"))),
        "curator",
    ]


def version(name: str) -> str:
    """Return the pinned version, or the library's source if no version is pinned."""
    pins = PINS / f"{name}.txt"
    if pins.is_file():
        lines = [line.partition("==") for line in pins.read_text().split()]
        return next(version for package, _, version in lines if package == _package(name))
    package = PINS / name / "package.json"
    if package.is_file():
        pinned: dict[str, str] = json.loads(package.read_text())["dependencies"]
        return pinned[_package(name)]
    return "as Debian has it"


def _package(library: str) -> str:
    """Return the name of a library's package in its registry."""
    locks = (lock for lock in LOCKS.sound()[0] if lock.library == library)
    return next((lock.distribution for lock in locks), library)


def download(requirements: Path, folder: Path, *options: str) -> None:
    """Download the packages of a requirements file, for the nodes' Python: wheels, or else sources.

    Raises:
        Crashed: a package cannot be downloaded, or its hash is not in the file.
    """
    machine = platform.machine()
    _must(
        [
            sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes",
            "--implementation", "cp", "--python-version", "3.11", "--abi", "cp311",
            "--abi", "abi3", "--abi", "none", "--platform", f"manylinux2014_{machine}",
            "--platform", f"manylinux_2_17_{machine}", "--platform", f"manylinux_2_28_{machine}",
            "--platform", "any", *options, "-d", str(folder), "-r", str(requirements),
        ],
        "pip download",
    )  # fmt: skip


def without_hashes(pins: Path) -> str:
    """Return a requirements file without hashes, for packages whose hashes have been verified.

    A wheel that is built here from sources has no known hash.
    """
    lines = (line.removesuffix("\\").rstrip() for line in pins.read_text().splitlines())
    return "".join(f"{line}\n" for line in lines if not line.lstrip().startswith("--hash"))


def _python(pins: Path, home: Path) -> None:
    wheels = home / "wheels"
    wheels.mkdir(parents=True)
    (home / "requirements.txt").write_text(without_hashes(pins))
    download(pins, wheels)
    for source in wheels.glob("*.tar.gz"):
        # Some packages have no wheel. They are pure Python, so this machine can build one, by the
        # setuptools that is installed: an isolated build would download one without a hash.
        _must(
            [
                sys.executable,
                "-m",
                "pip",
                "wheel",
                "-q",
                "--no-deps",
                "--no-build-isolation",
                "-w",
                str(wheels),
                str(source),
            ],
            "pip wheel",
        )
        source.unlink()


def _node(package: Path, home: Path, say: Say) -> None:
    home.mkdir()
    for file in (package, package.with_name("package-lock.json")):
        shutil.copy(file, home)
    if shutil.which("npm") is None:
        if os.geteuid() != 0 or not is_debian():
            raise Crashed("npm is not installed here")
        install(say, "npm")
    _must(
        ["npm", "ci", "--prefix", str(home), "--no-audit", "--no-fund", "--ignore-scripts",
         "--omit=dev", "--loglevel=error"],
        "npm ci",
    )  # fmt: skip
    # The record of each package's origin is not needed.
    (home / "node_modules" / ".package-lock.json").unlink(missing_ok=True)


def _must(command: list[str], what: str) -> None:
    done = docker_calls.command(command, _FETCH_S)
    if done.returncode:
        output = " ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        raise Crashed(f"{what} failed with exit code {done.returncode}: {output}")
