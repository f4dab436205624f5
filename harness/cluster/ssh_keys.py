"""Sets up SSH access to containers, with keys that are deleted when the command ends."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import paramiko

from fencepost.harness.errors import Crashed
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.harness.remote.ssh import Host, SshRemote
from fencepost.node.places import RUN

_HOME = f"{RUN}/ssh"
_BITS = 256


class Doors:
    """The harness' key, and a known_hosts file with the keys of the nodes that accept it."""

    def __init__(self) -> None:
        # Only this user can read the folder, and it is deleted when the command ends.
        self._folder = tempfile.TemporaryDirectory(prefix="fencepost-ssh-")
        home = Path(self._folder.name)
        self.key, self.known_hosts = home / "key", home / "known_hosts"
        made = paramiko.ECDSAKey.generate(bits=_BITS)
        made.write_private_key_file(str(self.key))
        self.known_hosts.touch(0o600)
        self._public = f"{made.get_name()} {made.get_base64()} fencepost\n".encode()
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()

    def open(self, inside: Remote, address: str) -> SshRemote:
        """Start sshd on a node through another Remote; return the Remote by SSH.

        Raises:
            Crashed: sshd does not start.
        """
        try:
            inside.put(f"{_HOME}/authorized_keys", self._public)
            inside.run(["fencepost-node", "sshd"])
            host_key = inside.get(f"{_HOME}/host_key.pub").decode()
        except RemoteError as error:
            raise Crashed(
                f"SSH does not start: {error}. If the node was kept running from an older image, "
                "run `fencepost cluster down` first"
            ) from error
        finally:
            inside.close()
        kind, code = host_key.split()[:2]
        with self._lock:
            # A new node may have an address that another node had before.
            self._known[address] = f"{address} {kind} {code}\n"
            self.known_hosts.write_text("".join(self._known.values()))
        return SshRemote(inside.node, Host(address, self.known_hosts, key=self.key))

    def close(self) -> None:
        self._folder.cleanup()
