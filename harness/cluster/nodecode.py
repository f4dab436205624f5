"""Packs the code for nodes: `fencepost-node`, and the file of every kind of server.

An image gets it when it is built; a host of a hosts file gets it before each run.
"""

from __future__ import annotations

import inspect
import io
import json
import tarfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from fencepost.harness.package import PACKAGE
from fencepost.harness.servers.kinds import KINDS
from fencepost.node.kind import Kind
from fencepost.node.places import HOME, PROGRAM
from fencepost.node.vdso import FILE as SKEW

# Run without site packages and without the caller's environment. Without a clock skew, `launch`
# executes the command directly: it runs for each client, and starting Python would be slow.
_ENTRY = f"""\
#!/bin/sh
if [ "$1" = launch ] && [ ! -e {SKEW} ] && command -v "$2" > /dev/null; then shift; exec "$@"; fi
exec python3 -ISc 'import sys; sys.path.insert(0, "{HOME}/lib"); \
from fencepost.node.command import main; main()' "$@"
"""


def files(kinds: Iterable[Kind] | None = None) -> dict[str, bytes]:
    """Return the content of each file by its path below /opt/fencepost, for all or these kinds."""
    kinds = list(KINDS.values() if kinds is None else kinds)
    node = "fencepost.node"
    modules = {
        f"{node}.{file.stem}": file.read_text()
        for file in sorted((PACKAGE / "node").glob("*.py"))
        if file.stem not in ("__init__", "__main__")
    }
    # The file of another package's kind may import its types from these.
    for name in ("plugins", "moved"):
        modules[f"fencepost.{name}"] = (PACKAGE / f"{name}.py").read_text()
    for kind in kinds:
        for module in (kind.module, *kind.modules):
            modules[module] = inspect.getsource(import_module(module))
    found = {PROGRAM: _ENTRY.encode()}
    for module, source in modules.items():
        *packages, name = module.split(".")
        for end in range(1, len(packages) + 1):
            found["/".join(["lib", *packages[:end], "__init__.py"])] = b""
        found["/".join(["lib", *packages, f"{name}.py"])] = source.encode()
    found["lib/fencepost/__init__.py"] = b"from fencepost import moved\n\nmoved.install()\n"
    index = {kind.name: kind.module for kind in kinds}
    found["lib/kinds.json"] = json.dumps(index, indent=1).encode()
    return found


def write(folder: Path) -> None:
    """Write the files into a folder of a build's context."""
    for path, content in files().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (folder / PROGRAM).chmod(0o755)


def archive(kinds: Iterable[Kind] | None = None) -> bytes:
    """Return the files as a tar archive, for all kinds of servers or these."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files(kinds).items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o755 if path == PROGRAM else 0o644
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
