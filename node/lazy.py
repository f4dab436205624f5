"""A file system that loses unsynced data when its machine loses power.

    lazy serve BACKING MOUNTPOINT    serve until it is unmounted
    lazy lose                        drop unsynced data, and print its amount
    lazy unsynced                    print the amount of unsynced data
    lazy settle                      write all of it down, as a kernel does in time
    lazy witness FOLDER TEXT         write two files with TEXT, and sync one of them
    lazy witnessed FOLDER TEXT       print which of the two have it, and remove both

lazydisk.py defines what is unsynced, and what a sync makes durable. Answers are JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import site
import socket
from collections.abc import Callable, Mapping
from typing import Any

CONTROL = "/run/fencepost/lazy.sock"
SYNCED, UNSYNCED = ".fencepost-synced", ".fencepost-unsynced"


def command(words: list[str]) -> dict[str, Any]:
    """Run one of the verbs. OSError if there is no such file system, or no space."""
    parser = argparse.ArgumentParser(prog="lazy")
    parser.add_argument("--control", default=CONTROL)
    verbs = parser.add_subparsers(dest="verb", required=True)
    serving = verbs.add_parser("serve")
    serving.add_argument("backing")
    serving.add_argument("mountpoint")
    for verb in ("lose", "unsynced", "settle"):
        verbs.add_parser(verb)
    for verb in ("witness", "witnessed"):
        looking = verbs.add_parser(verb)
        looking.add_argument("folder")
        looking.add_argument("text")
    given = parser.parse_args(words)
    if given.verb == "serve":
        # Only the nodes have its library. The other verbs start without the distribution's own
        # Python packages.
        site.main()
        from fencepost.node.lazyfuse import serve

        serve(given.backing, given.mountpoint, given.control, answer)
        return {}
    if given.verb == "witness":
        return witness(given.folder, given.text)
    if given.verb == "witnessed":
        return witnessed(given.folder, given.text)
    return ask(given.control, given.verb)


def answer(verbs: Mapping[str, Callable[[], dict[str, Any]]], request: bytes) -> bytes:
    """Run the requested verb; return its result as a line, or its error. Raise nothing, because
    without its server the file system is gone, and the node's data with it."""
    verb = request.decode(errors="backslashreplace").strip()
    try:
        found = verbs[verb]() if verb in verbs else {"error": f"no such verb: {verb}"}
    except OSError as error:
        found = {"error": f"{verb}: {error}"}
    return json.dumps(found).encode() + b"\n"


def ask(control: str, verb: str) -> dict[str, Any]:
    """Request a verb. Raise OSError if the file system cannot do it, or is not there."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(control)
        connection.sendall(verb.encode() + b"\n")
        with connection.makefile() as lines:
            found: dict[str, Any] = json.loads(lines.readline())
    if "error" in found:
        raise OSError(found["error"])
    return found


def witness(folder: str, text: str) -> dict[str, Any]:
    """Write both by ordinary system calls, as a server would; the unsynced one comes last."""
    for name in (SYNCED, UNSYNCED):
        fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, text.encode())
            if name == SYNCED:
                os.fsync(fd)
        finally:
            os.close(fd)
    return {"synced": read(folder, SYNCED) == text, "unsynced": read(folder, UNSYNCED) == text}


def witnessed(folder: str, text: str) -> dict[str, Any]:
    found = {"synced": read(folder, SYNCED) == text, "unsynced": read(folder, UNSYNCED) == text}
    for name in (SYNCED, UNSYNCED):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{folder}/{name}")
    return found


def read(folder: str, name: str) -> str | None:
    try:
        with open(f"{folder}/{name}") as file:
            return file.read()
    except FileNotFoundError:
        return None
