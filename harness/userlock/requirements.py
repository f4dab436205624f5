"""Installs the packages that a user lock needs: from a requirements file, a wheel or a project.

pip installs them here, for the nodes' Python, into a folder that is shipped with the lock's files,
because nodes have no access to the internet. On a node that folder precedes the client's own
packages, so the lock's pins win. The folder is stored with the run, so a replay needs no index.
"""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.userlock.files import MOST_BYTES, tree

SITE = "site-packages"
"""Below the lock's folder on a node."""
PYTHON = "3.11"
"""The nodes' (Debian 12)."""
_INSTALL_S = 900.0
_NAME = re.compile(r"^Name: (.+)$", re.MULTILINE)
_VERSION = re.compile(r"^Version: (.+)$", re.MULTILINE)


def installed(what: Path) -> dict[str, Path]:
    """Install a requirements file, a wheel or a project; return every file, below `site-packages`.

    The files are deleted when this process ends.

    Raises:
        BadArguments: it is none of the three, or pip cannot install it for the nodes.
        Crashed: pip is not installed here.
    """
    if what.is_dir() and not any((what / name).is_file() for name in _PROJECT):
        raise BadArguments(
            f"requirements {what}: the folder is not a Python project (none of "
            f"{', '.join(_PROJECT)} found). Name a requirements file, a wheel, or a project's "
            "folder"
        )
    if not what.exists():
        raise BadArguments(
            f"requirements {what}: no such file; name a requirements file, a wheel, or the folder "
            "of a Python project"
        )
    if not what.is_dir():
        _must_be_a_file(what)
    return tree(Path(_target(what.absolute(), _digest(what)).name), SITE)


def _must_be_a_file(what: Path) -> None:
    if not what.is_file():
        raise BadArguments(
            f"requirements {what}: it is not a regular file; name a requirements file, a wheel, or "
            "the folder of a Python project"
        )
    if what.stat().st_size > MOST_BYTES:
        raise BadArguments(
            f"requirements {what}: it is larger than {MOST_BYTES >> 20} MB, too large to send to "
            "each client's node"
        )


_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")


def packages(files: Mapping[str, Path]) -> list[str]:
    """Return NAME==VERSION of each package among a lock's files."""
    found = []
    for name, file in files.items():
        parts = name.split("/")
        if parts[:1] + parts[2:] == [SITE, "METADATA"] and parts[1].endswith(".dist-info"):
            text = file.read_text(errors="replace")
            names, versions = _NAME.search(text), _VERSION.search(text)
            found += [f"{names[1]}=={versions[1]}"] if names and versions else []
    return sorted(found, key=str.lower)


def _digest(what: Path) -> str:
    digest = hashlib.sha256()
    for name, file in (tree(what) if what.is_dir() else {what.name: what}).items():
        digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@cache
def _target(what: Path, digest: str) -> TemporaryDirectory[str]:
    """Return the folder in which it is installed; cached by the digest of its content."""
    target = TemporaryDirectory(prefix="fencepost-requirements-")
    if what.is_dir():
        with TemporaryDirectory(prefix="fencepost-wheel-") as wheels:
            _pip(what, ["wheel", "--no-deps", "-w", wheels, str(what)])
            (wheel,) = map(str, Path(wheels).glob("*.whl"))
            _install(what, target.name, [wheel])
    else:
        _install(what, target.name, [str(what)] if what.suffix == ".whl" else ["-r", str(what)])
    return target


def _install(what: Path, target: str, wanted: Sequence[str]) -> None:
    try:
        _into(what, target, wanted)
    except BadArguments as error:
        # A package may be published only as source. If it is pure Python, a wheel built here fits
        # the nodes too. If not, pip refuses that wheel, and the first error is raised.
        with TemporaryDirectory(prefix="fencepost-wheels-") as wheels:
            try:
                _pip(what, ["wheel", "-w", wheels, *wanted])
                _into(what, target, [*wanted, "--find-links", wheels])
            except BadArguments:
                raise error from None


def _into(what: Path, target: str, wanted: Sequence[str]) -> None:
    machine = platform.machine()
    glibc = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_36", "linux")
    platforms = [*(f"{of}_{machine}" for of in glibc), "any"]
    _pip(
        what,
        [
            "install", "--target", target, "--no-compile", "--only-binary=:all:",
            "--implementation", "cp", "--python-version", PYTHON,
            *(word for abi in ("cp311", "abi3", "none") for word in ("--abi", abi)),
            *(word for one in platforms for word in ("--platform", one)),
            *wanted,
        ],
    )  # fmt: skip


def _pip(what: Path, words: Sequence[str]) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-q"]
    try:
        done = subprocess.run(
            [*pip, *words], capture_output=True, text=True, timeout=_INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BadArguments(
            f"requirements {what}: pip timed out after {_INSTALL_S:.0f} s"
        ) from error
    if "No module named pip" in done.stderr:
        raise Crashed(
            f"requirements {what}: {sys.executable} has no pip; `{sys.executable} -m ensurepip` "
            "installs it"
        )
    if done.returncode:
        raise BadArguments(
            f"requirements {what} cannot be installed for the nodes (Python {PYTHON}, "
            f"{platform.machine()}, wheels only): {_reason(done.stderr)}"
        )


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return " ".join((errors or lines[-2:])[:2])
