"""Build images that contain only a server: no shell, no Python, no iptables.

The nodes' image provides the server's program and its shared libraries.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fencepost.harness.cluster import docker_engine, image

# After a server's files were put into /x: add the libraries that they are linked with.
_PACK = """
set -e
mkdir -p /x/data /x/tmp
{take}
find /x -type f '(' -perm -u+x -o -name '*.so*' ')' -exec ldd {{}} + 2> /dev/null |
  grep -o '/[^ :]*' | grep -v ^/x/ | sort -u | while read lib; do
    mkdir -p /x$(dirname $lib); cp -L $lib /x$lib
  done
tar -C /x -c .
"""
_FOREIGN = ("/sh", "/bash", "/dash", "/python3", "/iptables")


def docker(*words: str, check: bool = True, data: bytes | None = None) -> str:
    done = subprocess.run(["docker", *words], input=data, capture_output=True, check=check)
    return done.stdout.decode().strip()


@contextmanager
def bare(name: str, take: str, changes: Sequence[str]) -> Iterator[None]:
    """Build an image of this name within the block.

    `take`: shell on a node that puts a server's files below /x. `changes`: lines of a Dockerfile
    that set the command.
    """
    docker_engine.ensure(print)
    packed = subprocess.run(
        ["docker", "run", "--rm", "--entrypoint", "bash", image.ensure(print), "-c",
         _PACK.format(take=take)],
        capture_output=True, check=True,
    )  # fmt: skip
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tar:
        assert not [one for one in tar.getnames() if one.endswith(_FOREIGN)]
    words = [word for change in changes for word in ("--change", change)]
    docker("import", *words, "-", name, data=packed.stdout)
    try:
        yield
    finally:
        docker("rmi", "-f", name)
