"""The process on the storage node that serves the resource, where the store needs one."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence

from fencepost.harness.clients.shipped import equip
from fencepost.harness.remote.processes import RESOURCE, marked
from fencepost.harness.remote.remote import Remote
from fencepost.harness.servers import serverlog
from fencepost.harness.servers.wait import START_S
from fencepost.node.places import CODE, CODE_PATH, LOGS, MARK, PYTHON
from fencepost.workloads.resources.server import PORT

_LOG = f"{LOGS}/resource.log"
# It needs no root permission.
_AS_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")


def start(
    remote: Remote, module: str, here: str, store_port: int, peers: Sequence[str], code: bytes
) -> None:
    """Start `module` on the storage node, whose address is `here`; end an earlier one first.

    `store_port`: of the server that keeps the data there. `peers`: ADDRESS:PORT of the lock's
    servers. `code`: the archive that the node needs (harness/clients/shipped.py).

    Raises:
        RemoteError: the node does not answer, or nothing listens in time.
    """
    equip(remote, {CODE: code})
    serve = ["-m", module, here, str(PORT), str(store_port), *peers]
    env = ["env", f"{MARK}={RESOURCE}", f"PYTHONPATH={CODE_PATH}"]
    words = shlex.join([*_AS_NOBODY, *env, PYTHON, *serve])
    for process in marked(remote, RESOURCE):
        remote.signal(process.pid, signal.SIGKILL, process.started)
    remote.run(["bash", "-c", f"setsid {words} > {_LOG} 2>&1 < /dev/null &"])
    wait = f"until echo > /dev/tcp/{here}/{PORT}; do sleep 0.05; done 2> /dev/null"
    remote.run(["timeout", f"{START_S:.0f}", "bash", "-c", wait], timeout_s=START_S + 10)


def begin_log(remote: Remote) -> None:
    """Empty its log."""
    serverlog.begin(remote, _LOG)
