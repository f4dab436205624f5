"""The host keys that identify nodes: one for each address, the latest."""

from __future__ import annotations

from fencepost.harness.cluster.ssh_keys import Doors


class Inside:
    """A node that has started its sshd, as its own Remote shows it."""

    def __init__(self, node, key):
        self.node, self._key = node, key

    def put(self, path, content):
        pass

    def run(self, words):
        pass

    def get(self, path):
        return f"ssh-ed25519 {self._key} root@{self.node}\n".encode()

    def close(self):
        pass


def test_a_restarted_node_may_have_an_address_that_another_one_had():
    doors = Doors()
    try:
        doors.open(Inside("redis-1", "AAAA"), "172.22.0.2")
        doors.open(Inside("redis-2", "BBBB"), "172.22.0.3")
        doors.open(Inside("redis-2", "CCCC"), "172.22.0.2")
        assert doors.known_hosts.read_text().splitlines() == [
            "172.22.0.2 ssh-ed25519 CCCC",
            "172.22.0.3 ssh-ed25519 BBBB",
        ]
    finally:
        doors.close()
