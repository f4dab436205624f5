"""The Docker engine: the one that answers, or else the distribution's, installed and started here.

It is called through its SDK. The docker command does what the SDK cannot: Compose, a build by
BuildKit, a pull with a timeout, and a program in a container with its three streams.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fencepost.harness.cluster import asking
from fencepost.harness.errors import Crashed

Say = Callable[[str], None]

_DAEMON_LOG = Path("/var/log/fencepost-dockerd.log")
_COMMAND_S = 30.0
_SYSTEMCTL_S = 90.0
# A daemon that was killed leaves a containerd behind, for which the next one may wait in vain.
_ATTEMPTS = 3
_PID_FILES = (
    Path("/var/run/docker.pid"),
    Path("/var/run/docker/containerd/containerd.pid"),
)


@dataclass(frozen=True)
class Engine:
    """An engine that answers. `compose` is the command that calls its Compose."""

    compose: tuple[str, ...]
    version: str


class NoEngine(Crashed):
    """Docker is not installed, so that no node can be up."""


def find() -> Engine:
    """Return the engine that answers. Install and start nothing.

    Raises:
        NoEngine: Docker is not installed here.
        Crashed: it is installed, and does not answer; the text says what to do.
    """
    try:
        return Engine(_compose_there(), version())
    except asking.Refused as error:
        if not any(map(shutil.which, ("docker", "dockerd"))):
            raise NoEngine("Docker is not installed here, so no node is up.") from error
        _must_be_allowed(str(error))
        raise Crashed(
            f"{error}. Until then what it keeps cannot be seen; this command does not start it."
        ) from error


def ensure(say: Say) -> Engine:
    """Return the engine that answers; as root on Debian or Ubuntu, install and start one first.

    `say` is told first what is installed or started.

    Raises:
        Crashed: no engine answers, and none can be installed; the text says what to install.
    """
    if shutil.which("docker") is None:
        _provide(say)
    try:
        found = version()
    except asking.Hung:
        raise  # it is alive: another one beside it would take its bridge from it
    except asking.Refused as error:
        _provide(say, str(error))
        found = version()
    return Engine(_compose(say), found)


def version() -> str:
    """Return the engine's version. Raise Refused if none answers."""
    with contextlib.closing(asking.client()) as client, asking.asked("answer"):
        return str(client.version()["Version"])


def _provide(say: Say, refused: str = "") -> None:
    """Install and start an engine. `refused` is the error of the one that is installed, if any."""
    _must_be_allowed(refused)
    if os.geteuid() != 0 or not is_debian():
        raise Crashed(
            f"No Docker engine answers{f' ({refused})' if refused else ''}. Start it, or install "
            "Docker Engine with the Compose plugin; as root on Debian or Ubuntu this command "
            "installs docker.io and docker-compose by itself."
        )
    if shutil.which("dockerd") is None:
        install(say, "docker.io", "docker-compose", "iptables")
    _start(say)


def _must_be_allowed(refused: str) -> None:
    """Raise Crashed if what Docker said is that this user may not use it."""
    if "permission denied" in refused.lower():
        raise Crashed(
            "A Docker engine is running, but this user may not use it. Run as root, or join the "
            f"docker group (`sudo usermod -aG docker $USER`, then log in again). It said: {refused}"
        )


def is_debian() -> bool:
    """Whether this machine installs packages with apt."""
    try:
        release = Path("/etc/os-release").read_text()
    except OSError:
        return False
    names = [line for line in release.splitlines() if line.startswith(("ID=", "ID_LIKE="))]
    return any("debian" in name or "ubuntu" in name for name in names)


def _compose_there() -> tuple[str, ...]:
    """The command that calls Compose; empty if there is none."""
    for call in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(call[0]) is None:
            continue
        if asking.command([*call, "version"], _COMMAND_S).returncode == 0:
            return call
    return ()


def _compose(say: Say) -> tuple[str, ...]:
    if found := _compose_there():
        return found
    if os.geteuid() == 0 and is_debian():
        install(say, "docker-compose")
        return ("docker-compose",)
    raise Crashed("Docker answers but has no Compose: install its Compose plugin.")


def install(say: Say, *packages: str) -> None:
    """Install Debian packages. Raise Crashed, with apt's message, if that fails."""
    say(f"Installing {', '.join(packages)} from the distribution")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-q"], ["install", "-y", "-q", *packages]):
        done = subprocess.run(
            ["apt-get", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        if done.returncode:
            raise Crashed(f"apt-get {' '.join(arguments)} failed: {done.stderr.strip()[-800:]}")


def _start(say: Say) -> None:
    say("Starting the Docker daemon")
    if Path("/run/systemd/system").is_dir():
        asking.command(["systemctl", "start", "docker"], _SYSTEMCTL_S)
        if _wait(20):
            return
    for attempt in range(_ATTEMPTS):
        _clear_what_a_killed_daemon_left()
        log = _DAEMON_LOG.open("ab")
        daemon = subprocess.Popen(
            ["dockerd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        if _wait(40, daemon):
            return
        if attempt < _ATTEMPTS - 1:
            # The new daemon does not start if an old bridge is there that it has no record of.
            subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True, check=False)
    said = _DAEMON_LOG.read_text(errors="replace")[-1500:]
    raise Crashed(f"The Docker daemon did not start. The end of {_DAEMON_LOG}:\n{said}")


def _clear_what_a_killed_daemon_left() -> None:
    for file in _PID_FILES:
        try:
            pid = int(file.read_text())
        except (OSError, ValueError):
            continue
        name = Path(f"/proc/{pid}/comm")
        alive = name.exists() and name.read_text().strip() in ("dockerd", "containerd")
        if not alive:
            file.unlink(missing_ok=True)


def _wait(seconds: float, daemon: subprocess.Popen[bytes] | None = None) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(asking.Refused):
            version()
            return True
        if daemon is not None and daemon.poll() is not None:
            return False
        time.sleep(0.2)
    return False
