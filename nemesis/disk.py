"""A full disk: a file takes all the space left on a server's disk.

The server's data is then on a small disk (node/disk.py). Servers react differently: Redis with an
append-only file refuses writes, etcd may exit. The fault ends with the removal of the file. A
server that has exited, or does not serve any more, is restarted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from fencepost.nemesis.family import Colour, Column, Family
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Leftover, Receipt, together
from fencepost.nemesis.site import Remote, Server, Site
from fencepost.nemesis.targets import SERVERS, Drawn, Layout, listed, pick

TARGETS = SERVERS
FILLER = ".fencepost-filler"
# In large pieces, and then in the smallest possible ones.
_FILL = """
mountpoint -q "$1" || exit 1
dd if=/dev/zero of="$1/$2" bs=128k conv=fsync 2> /dev/null
dd if=/dev/zero of="$1/$2" bs=512 conv=fsync,notrunc oflag=append 2> /dev/null
true
"""
# Whether a byte can be written, and how many are left for users other than root.
_LOOK = """
echo x 2> /dev/null > "$1/.fencepost-try"
if [ -s "$1/.fencepost-try" ]; then echo yes; else echo no; fi
rm -f "$1/.fencepost-try"
stat -f -c '%a %S' "$1"
"""


class Disk:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        return together([self._fill(node) for node in fault.targets])

    def _fill(self, node: str) -> Receipt:
        data = self._site.server(node).data
        # Never the node's own disk, which other programs share.
        fill = ["bash", "-c", _FILL, "fill", data, FILLER]
        small = self._site.remote(node).run(fill, check=False, timeout_s=60.0)
        if small.code:
            return Receipt(False, f"the data of {node} is not on a separate disk")
        return self._look(node, full=True)

    def heal(self, fault: Fault) -> Receipt:
        return together([self._empty(node) for node in fault.targets])

    def _empty(self, node: str) -> Receipt:
        self._remove(node)
        receipt, server = self._look(node, full=False), self._site.server(node)
        server.start()
        try:
            server.wait_ready()
        except Exception:
            # It runs but does not serve, like a ZooKeeper that could not write who leads. The
            # errors of a Site are the harness', which this file cannot name. If this was its own
            # trouble, it appears again.
            server.kill()
            server.start()
            server.wait_ready()
            how = f"{receipt.how}; its server did not serve again before it was restarted"
            return replace(receipt, how=how)
        return receipt

    def _remove(self, node: str) -> None:
        data = self._site.server(node).data
        # The first sync may report the write errors of the full disk.
        empty = f"rm -f {data}/{FILLER} && (sync {data} || true)"
        self._site.remote(node).run(["bash", "-c", empty])

    def _look(self, node: str, full: bool) -> Receipt:
        data = self._site.server(node).data
        output = self._site.remote(node).run(["bash", "-c", _LOOK, "look", data]).out.split()
        writable, left = output[0] == "yes", int(output[1]) * int(output[2])
        words = f"{left} bytes are left on the disk of {node}, and a write of one "
        words += "succeeds" if writable else "fails"
        return Receipt(writable != full, words, {"left": left, "writable": writable})


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    return [Drawn(pick(random, at, asked.target or "one"), {})]


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    return f"the disk of {listed(targets)} is full"


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    filler = f"{server.data}/{FILLER}" if server and server.data else ""
    if not filler or remote.run(["test", "-e", filler], check=False).code:
        return []
    remove = partial(remote.run, ["rm", "-f", filler])
    return [Leftover("its server's disk is full", "emptied its server's disk", remove)]


FAMILY = Family(
    name="disk",
    what="fills the disk of a server",
    receipt="no byte is free, and writing one fails",
    make=lambda site, chains: Disk(site),
    draw=draw,
    describe=describe,
    targets=TARGETS,
    needs={"DISK": "small"},
    mounts=True,
    leftovers=leftovers,
    forgets=True,  # a server may exit on it (PostgreSQL), and every session with it
    ours_alone="it needs fencepost's own disk under the server's data",
    colour=Colour("#c07a3e", "#e0a06a"),
    columns=(Column("disk", "disk full", "Under full disks", 7),),
)
