"""Finds the Docker engine; if none runs, installs and starts the distribution's.

The engine is called through its SDK. The docker command serves where the SDK has no
equivalent: Compose, a build with BuildKit, a pull with a timeout, and a program in a container with
its three streams.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fencepost.harness.cluster import docker_calls
from fencepost.harness.cluster.engine_weight import give_weight
from fencepost.harness.errors import Crashed

Say = Callable[[str], None]

_DAEMON_LOG = Path("/var/log/fencepost-dockerd.log")
# Where the docker command looks for its plugins (its cli-plugins/manager/manager_unix.go).
_PLUGINS = tuple(
    Path(place) / "docker/cli-plugins"
    for place in ("/usr/local/lib", "/usr/local/libexec", "/usr/lib", "/usr/libexec")
)
_SYSTEMCTL_S = 90.0
# On a slow mirror, the packages of a Docker engine may take several minutes.
_APT_S = 1800.0
# docker.io only recommends two of them: certificates, to pull from a registry, and the hierarchy of
# cgroups on a machine without systemd.
_ENGINE = ("docker.io", "iptables", "ca-certificates", "cgroupfs-mount")
# npm and the packages that it recommends take 900 MB.
_INSTALL = ("install", "-y", "-q", "--no-install-recommends")
# apt refuses to run twice at the same time.
_APT = threading.Lock()
# How long a running daemon may take to answer.
_BEGINS_S = 20.0
# A killed daemon leaves a containerd behind, which may block the start of the next daemon.
_ATTEMPTS = 3
_PID_FILE = Path("/var/run/docker.pid")
_PID_FILES = (_PID_FILE, Path("/var/run/docker/containerd/containerd.pid"))
_SOCKET = "unix:///var/run/docker.sock"


@dataclass(frozen=True)
class Engine:
    """A Docker engine that answers."""

    version: str


class NoEngine(Crashed):
    """Docker is not installed, so no node can be running."""


def find() -> Engine:
    """Return the engine that answers. Install and start nothing.

    Raises:
        NoEngine: Docker is not installed here.
        Crashed: it is installed but does not answer; the text says what to do.
    """
    try:
        return Engine(version())
    except docker_calls.Refused as error:
        if not any(map(shutil.which, ("docker", "dockerd"))):
            raise NoEngine("Docker is not installed here, so no node is running.") from error
        _must_be_allowed(str(error))
        raise Crashed(
            f"{error}. This command does not start it, so it cannot tell what Docker has."
        ) from error


def answering() -> Engine | None:
    """Return the engine that answers; None if none does, or the docker command is missing. Raise
    Hung if it runs and does not."""
    if shutil.which("docker") is None:
        return None
    try:
        return Engine(version())
    except docker_calls.Hung:
        raise
    except docker_calls.Refused:
        return None


def ensure(say: Say) -> Engine:
    """Return the engine that answers; as root on Debian or Ubuntu, install and start one first.

    Reports to `say` before it installs or starts anything.

    Raises:
        Crashed: no engine answers, and none can be installed; the text says what to install.
    """
    if shutil.which("docker") is None:
        _provide(say)
    try:
        found = version()
    except docker_calls.Hung:
        raise  # the engine runs: a second one would take its bridge
    except docker_calls.Refused as error:
        _provide(say, str(error))
        found = version()
    return Engine(found)


def version() -> str:
    """Return the engine's version. Raise Refused if none answers."""
    with contextlib.closing(docker_calls.client()) as client, docker_calls.request("answer"):
        return str(client.version()["Version"])


def _provide(say: Say, refused: str = "") -> None:
    """Install and start an engine. `refused` is the error of the one that is installed, if any."""
    _must_be_allowed(refused)
    host = os.environ.get("DOCKER_HOST") or _SOCKET
    if refused and host != _SOCKET:
        raise Crashed(
            f"no Docker engine answers at {host} (DOCKER_HOST): start it, or unset DOCKER_HOST to "
            f"use the engine of this machine. {refused}"
        )
    if os.geteuid() != 0 or not is_debian():
        raise Crashed(
            f"No Docker engine answers{f' ({refused})' if refused else ''}. Start it, or install "
            "Docker Engine; as root on Debian or Ubuntu this command installs docker.io by itself."
        )
    if shutil.which("dockerd") is None:
        install(say, *_ENGINE)
    if host == _SOCKET:
        _start(say)


def _must_be_allowed(refused: str) -> None:
    """Raise Crashed if Docker refused this user."""
    if "permission denied" in refused.lower():
        raise Crashed(
            "A Docker engine is running, but this user may not use it. Run as root, or join the "
            f"docker group (`sudo usermod -aG docker $USER`, then log in again). It said: {refused}"
        )


def is_debian() -> bool:
    """Return whether this machine installs packages with apt."""
    try:
        release = Path("/etc/os-release").read_text()
    except OSError:
        return False
    names = [line for line in release.splitlines() if line.startswith(("ID=", "ID_LIKE="))]
    return any("debian" in name or "ubuntu" in name for name in names)


def compose_there() -> tuple[str, ...]:
    """Return the command that calls Compose; empty if there is none.

    Looks for the plugin's file: running the plugin for its version would take a second.
    """
    own = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "cli-plugins"
    plugins = (folder / "docker-compose" for folder in (own, *_PLUGINS))
    if shutil.which("docker") and any(os.access(plugin, os.X_OK) for plugin in plugins):
        return ("docker", "compose")
    return ("docker-compose",) if shutil.which("docker-compose") else ()


def compose(say: Say) -> tuple[str, ...]:
    """Return the command that calls Compose; as root on Debian or Ubuntu, install it first.

    Raises:
        Crashed: it is not installed, and cannot be installed here.
    """
    if found := compose_there():
        return found
    if os.geteuid() == 0 and is_debian():
        install(say, "docker-compose")
        return ("docker-compose",)
    raise Crashed("--compose needs Docker Compose, which is not installed: install its plugin")


def install(say: Say, *packages: str) -> None:
    """Install Debian packages. Raise Crashed, with apt's message, if that fails."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with _APT:
        say(f"Installing {', '.join(packages)} from the distribution")
        for arguments in (["update", "-q"], [*_INSTALL, *packages]):
            done = docker_calls.command(["apt-get", *arguments], _APT_S, env=environment)
            if done.returncode:
                raise Crashed(f"apt-get {' '.join(arguments)} failed: {done.stderr.strip()[-800:]}")


def _start(say: Say) -> None:
    say("Starting the Docker daemon")
    if Path("/run/systemd/system").is_dir():
        docker_calls.command(["systemctl", "start", "docker"], _SYSTEMCTL_S)
        if _wait(20):
            return

    def running() -> int | None:
        return _alive(_PID_FILE, "dockerd")

    # A second daemon would fail, and would take the bridge and the sockets of the first.
    if running() and _wait(_BEGINS_S, lambda: not running()):
        return
    if pid := running():
        raise Crashed(
            f"A Docker daemon is running (pid {pid}) but does not answer. Restart it (`systemctl "
            "restart docker`)"
        )
    for attempt in range(_ATTEMPTS):
        _clear_what_a_killed_daemon_left()
        if _began():
            give_weight()
            return
        if attempt < _ATTEMPTS - 1:
            # The daemon does not start if a bridge exists that it has no record of.
            subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True, check=False)
    log = _DAEMON_LOG.read_text(errors="replace")[-1500:]
    raise Crashed(f"The Docker daemon did not start. The end of {_DAEMON_LOG}:\n{log}")


def _began() -> bool:
    with _DAEMON_LOG.open("ab") as log:
        daemon = subprocess.Popen(
            ["dockerd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    return _wait(40, lambda: daemon.poll() is not None)


def _clear_what_a_killed_daemon_left() -> None:
    for file in _PID_FILES:
        if _alive(file, "dockerd", "containerd") is None:
            file.unlink(missing_ok=True)


def _alive(file: Path, *names: str) -> int | None:
    """Return the pid in a file, if a program of one of these names runs with this pid.

    A zombie (state Z in proc(5)) does not count.
    """
    try:
        pid = int(file.read_text())
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, ValueError):
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return pid if name in names and rest.split()[0] not in ("Z", "X") else None


def _wait(seconds: float, over: Callable[[], bool] = lambda: False) -> bool:
    """Wait until the engine answers; return False on a timeout, or once `over` returns True."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(docker_calls.Refused):
            version()
            return True
        if over():
            return False
        time.sleep(0.2)
    return False
