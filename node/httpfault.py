"""Puts a proxy between some clients and this node's HTTP server (httpproxy.py), and removes it.

    http on KIND PORT TIME ADDRESS...      do this fault to the requests of these clients
    http show                              what the proxy has met
    http off                               undo it, and return what the proxy had met
    http left                              whether any of it is there
    http serve KIND PORT TIME ADDRESS...   be the proxy

Two chains of fencepost's own send the clients there: nat redirects their new connections, and
filter resets those that they already had, which nat does not see. Connections that are idle are
closed at once if the kernel can (`ss -K`), so that no request meets that reset. All of it is undone
in the other order: without the rules first, so that no client is sent to a proxy that is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from fencepost.node import listen, processes
from fencepost.node.httpproxy import KINDS, Fault, Proxy, Tally
from fencepost.node.places import MARK, PROGRAM_PATH, RUN

FILE = Path(RUN, "http.json")
_CHAIN = "FENCEPOST-HTTP"
_HOOKS = (("nat", "PREROUTING"), ("filter", "INPUT"))
_OURS = "http-proxy"
_WAIT_S = 8.0


def command(words: list[str]) -> dict[str, Any]:
    """Run one of the verbs. OSError if it is unknown, or the proxy does not start."""
    match words:
        case ["on", kind, port, time_s, *clients] if kind in KINDS and clients:
            return _on(kind, int(port), float(time_s), clients)
        case ["show"]:
            return _shown()
        case ["off"]:
            return _off()
        case ["left"]:
            return {"left": _left()}
        case ["serve", kind, port, time_s, *clients]:
            _serve(kind, int(port), float(time_s), clients)
    raise OSError(f"unknown verb http {' '.join(words)}; use on, show, off or left")


def _on(kind: str, port: int, time_s: float, clients: Sequence[str]) -> dict[str, Any]:
    _off()
    try:
        to = _start([kind, str(port), repr(time_s), *clients])
        _redirect(port, to, clients)
        closed = _close(port, clients)
    except BaseException:
        _off()
        raise
    return {**_shown(), "rules": _rules(), "closed": closed}


def _serve(kind: str, port: int, time_s: float, clients: Sequence[str]) -> NoReturn:
    fault = Fault(kind, frozenset(clients), (listen.LOOPBACK, port), time_s)
    tally = Tally(FILE)
    proxy = Proxy("0.0.0.0", fault, tally)
    tally.facts = {"pid": os.getpid(), "port": proxy.server_address[1], "kind": kind}
    tally.write()
    proxy.serve_forever()
    raise OSError("the proxy has ended")


def _start(words: Sequence[str]) -> int:
    """Start the proxy, and return the port that it listens on."""
    proxy = subprocess.Popen(
        [PROGRAM_PATH, "http", "serve", *words], env=os.environ | {MARK: _OURS},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + _WAIT_S
    while not FILE.exists():
        if time.monotonic() > end or proxy.poll() is not None:
            raise OSError("the proxy of HTTP does not start")
        time.sleep(0.005)
    return int(_shown()["port"])


def table(port: int, to: int, clients: Sequence[str]) -> str:
    """Format the rules for iptables-restore: `port` is the server's, `to` the proxy's."""
    met = [f"-A {_CHAIN} -s {client} -p tcp --dport {port}" for client in clients]
    lines = ["*nat", f":{_CHAIN} - [0:0]"]
    lines += [f"{one} -j REDIRECT --to-ports {to}" for one in met]
    lines += ["COMMIT", "*filter", f":{_CHAIN} - [0:0]"]
    lines += [f"{one} -j REJECT --reject-with tcp-reset" for one in met]
    return "\n".join([*lines, "COMMIT", ""])


def _redirect(port: int, to: int, clients: Sequence[str]) -> None:
    rules = table(port, to, clients)
    _run("iptables-restore", "-w", "--noflush", given=rules)
    for name, chain in _HOOKS:
        _run("iptables", "-w", "-t", name, "-I", chain, "-j", _CHAIN)


def _close(port: int, clients: Sequence[str]) -> int:
    """Close the clients' connections to the server; return how many the kernel has closed."""
    far = " or ".join(f"dst {client}" for client in clients)
    filters = ["state", "established", f"( sport = :{port} ) and ( {far} )"]
    with contextlib.suppress(FileNotFoundError):
        closed = subprocess.run(
            ["ss", "-KHnt", *filters], capture_output=True, text=True, check=False
        )
        return len(closed.stdout.splitlines())
    return 0


def _off() -> dict[str, Any]:
    for name, chain in _HOOKS:
        for words in (("-D", chain, "-j", _CHAIN), ("-F", _CHAIN), ("-X", _CHAIN)):
            subprocess.run(["iptables", "-w", "-t", name, *words], capture_output=True, check=False)
    for proxy in processes.marked(_OURS):
        processes.send(proxy.pid, signal.SIGKILL, proxy.started)
        end = time.monotonic() + _WAIT_S
        while processes.lives(proxy.pid) and time.monotonic() < end:
            time.sleep(0.002)
    found = _shown()
    FILE.unlink(missing_ok=True)
    return {"met": found.get("met", {}), "left": _left()}


def _shown() -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(FILE.read_text())
    except FileNotFoundError:
        return {"met": {}}
    return found


def _rules() -> int:
    """Return how many rules send a client to the proxy."""
    listed = subprocess.run(
        ["iptables", "-w", "-t", "nat", "-S", _CHAIN], capture_output=True, text=True, check=False
    )
    return listed.stdout.count("-j REDIRECT")


def _left() -> bool:
    chains = any(
        _CHAIN in subprocess.run(
            ["iptables", "-w", "-t", name, "-S"], capture_output=True, text=True, check=False
        ).stdout
        for name, _ in _HOOKS
    )  # fmt: skip
    return chains or bool(processes.marked(_OURS))


def _run(*words: str, given: str = "") -> None:
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
