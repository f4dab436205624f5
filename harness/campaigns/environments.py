"""Environments of packages: a venv of Python that pip fills, or a folder of Node that npm fills.

An environment is made once per process and set of packages, and deleted when the process ends. A
failure is kept too: without a network pip takes a while to give up.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from fencepost.harness.errors import Crashed
from fencepost.workloads.scenarios.register.versions import Packages

_INSTALL_S = 900.0
_INHERITED = ("PYTHONPATH", "PYTHONHOME", "NODE_PATH", "VIRTUAL_ENV")
_LONGEST = 300  # characters of an error
_RETRIES = ("--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000")
_NO_RELEASE = re.compile(r"satisfies the requirement .* \(from versions: (.+)\)")
# npm's first lines are a code, a number and a call: `npm error code ETARGET`.
_ERROR = re.compile(
    r"^(?:ERROR:|npm (?:error|ERR!)(?! code| errno| syscall)(?: notarget)?) *(.+ .+)$", re.MULTILINE
)
_ASK = (
    "import importlib.metadata, json, sys\n"
    "print(json.dumps({one: importlib.metadata.version(one) for one in sys.argv[1:]}))"
)
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Environment:
    """Runs Python scripts that use some packages. `versions`: those installed, by package."""

    python: str
    env: Mapping[str, str]
    versions: Mapping[str, str]


def environment(packages: Packages) -> Environment:
    """Return the environment that has these packages.

    Raises:
        Crashed: they cannot be installed; the text is one sentence.
    """
    with _one_at_a_time:
        made = _made(packages)
    if isinstance(made, str):
        raise Crashed(made)
    return made[1]


@cache
def _made(packages: Packages) -> tuple[TemporaryDirectory[str], Environment] | str:
    folder = TemporaryDirectory(prefix="fencepost-versions-")
    try:
        make = npm if packages.ecosystem == "npm" else pip
        return folder, make(Path(folder.name), packages)
    except Crashed as error:
        folder.cleanup()
        return str(error)


def pip(folder: Path, packages: Packages) -> Environment:
    """Make a venv in this folder."""
    venv, python = folder / "venv", str(folder / "venv" / "bin" / "python")
    _run([sys.executable, "-m", "venv", str(venv)], f"{sys.executable} cannot make a venv")
    wanted = " ".join(packages.wanted)
    words = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--retries=1", "-q")
    _run([python, *words, "install", *packages.wanted], f"pip cannot install {wanted}")
    said = _run([python, "-c", _ASK, *packages.names], f"{wanted} is installed, but not found")
    return Environment(python, _clean(), json.loads(said))


def npm(folder: Path, packages: Packages) -> Environment:
    """Make a folder of node_modules in this folder."""
    if not shutil.which("npm"):
        raise Crashed("npm is not installed: the script needs Node.js and npm")
    words = ("install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error", *_RETRIES)
    _run(
        ["npm", *words, "--prefix", str(folder), *packages.wanted],
        f"npm cannot install {' '.join(packages.wanted)}",
    )
    modules = folder / "node_modules"
    versions = {
        one: str(json.loads((modules / one / "package.json").read_bytes())["version"])
        for one in packages.names
    }
    return Environment(sys.executable, {**_clean(), "NODE_PATH": str(modules)}, versions)


def _clean() -> dict[str, str]:
    """Return the environment of this process without the packages that it adds."""
    return {name: value for name, value in os.environ.items() if name not in _INHERITED}


def _run(words: Sequence[str], problem: str) -> str:
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", env=_clean(), start_new_session=True,
        )  # fmt: skip
        with ended(process):
            out, error_text = process.communicate(timeout=_INSTALL_S)
    except subprocess.TimeoutExpired as error:
        raise Crashed(f"{problem}: no end after {_INSTALL_S:.0f} s") from error
    except OSError as error:
        raise Crashed(f"{problem}: {error.strerror}") from error
    if process.returncode:
        raise Crashed(f"{problem}: {reason(error_text or out)}")
    return out


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kill the process and all that it started, unless the block ends without an error. It has a
    session of its own."""
    try:
        yield
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def reason(said: str) -> str:
    """Return the first error of an installer in words."""
    if found := _NO_RELEASE.search(said):
        newest = found[1].rpartition(", ")[2]
        if newest == "none":
            return "no index that answered has this package"
        return f"no index that answered has this release (the newest is {newest})"
    errors = [one[1].strip() for one in _ERROR.finditer(said)]
    return (errors or said.strip().splitlines()[-1:] or ["it said nothing"])[0][:_LONGEST]
