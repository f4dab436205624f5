"""`sshd`: lets the harness in by SSH, as root and by key only.

The accepted keys are in /run/fencepost/ssh/authorized_keys. The host key is made here, so that no
two nodes share one.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

from fencepost.node.places import RUN

_HOME = Path(RUN) / "ssh"
_PID = _HOME / "sshd.pid"
_LOG = "/var/log/fencepost-sshd.log"
# A test opens many connections at once, and many sessions over each.
_CONFIG = f"""\
HostKey {_HOME}/host_key
AuthorizedKeysFile {_HOME}/authorized_keys
PidFile {_PID}
AllowUsers root
PermitRootLogin prohibit-password
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
DisableForwarding yes
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
MaxSessions 200
MaxStartups 200
ClientAliveInterval 15
"""


def command(words: list[str]) -> None:
    """Start it unless it runs. OSError, with sshd's message, if it fails."""
    for folder in (_HOME, Path("/run/sshd")):
        folder.mkdir(parents=True, exist_ok=True)
    _HOME.chmod(0o700)
    key = _HOME / "host_key"
    if not key.exists():
        named = ("-C", socket.gethostname(), "-f", str(key))
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", *named)
    config = _HOME / "sshd_config"
    config.write_text(_CONFIG)
    if not _runs():
        _run("/usr/sbin/sshd", "-f", str(config), "-E", _LOG)


def _runs() -> bool:
    try:
        os.kill(int(_PID.read_text()), 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return False
    return True


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{command[0]}: exit code {done.returncode}: {done.stderr.strip()}")
