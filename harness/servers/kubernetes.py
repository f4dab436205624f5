"""Defines Kubernetes' API as the hunt's model of it answers, served by HTTP on nodes.

Debian has kube-apiserver as source only (kube_apiserver.py), and its build takes ten minutes. The
model has the objects by which leaders are elected, is compared with kube-apiserver 1.20, and
answers anything else with 501. The first server keeps the objects; the others forward requests to
it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from email.utils import parsedate_to_datetime
from typing import Any

from fencepost.node import listen
from fencepost.node.kind import Clock, Image, Kind, Mark, Start
from fencepost.node.places import HOME
from fencepost.node.watch import Bounds, Watch

PORT = 6443
_FIRST = "kubernetes-1"
_TIMEOUT_S = 2.0
_MODEL = "fencepost.hunt.models.kubernetes"
_SERVE = (
    f'import sys; sys.path.insert(0, "{HOME}/lib"); from {_MODEL} import serve; '
    "serve.main(sys.argv[1:])"
)


def _command(start: Start) -> list[str]:
    keeps = f"{start.data}/objects.json"
    source = keeps if start.node == _FIRST else f"http://{_FIRST}:{PORT}"
    return ["python3", "-ISc", _SERVE, str(PORT), source, *start.listen]


def _health() -> bool:
    """List objects, which the first server has to answer."""
    _ask("/api/v1/namespaces/default/configmaps")
    return True


def _version() -> str:
    found, _ = _ask("/version")
    return f"a model of kube-apiserver {found['gitVersion']}"


def _wall(mark: Mark) -> Bounds:
    """Bound the wall clock by the Date of a reply, which has a resolution of 1 s."""
    watch = Watch(time.CLOCK_REALTIME)
    _, date = _ask("/version")
    shown_s = round(parsedate_to_datetime(date).timestamp())
    return watch.bounds(shown_s * 10**9, grain_ns=10**9)


def _ask(path: str) -> tuple[dict[str, Any], str]:
    """Return the object that the server answers, and the answer's Date."""
    link = http.client.HTTPConnection(listen.own(), PORT, timeout=_TIMEOUT_S)
    with contextlib.closing(link):
        try:
            link.request("GET", path)
            reply = link.getresponse()
            content = json.loads(reply.read())
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"the API server did not answer {path}: {error!r}") from error
        if reply.status != 200:
            raise OSError(f"the API server answered {reply.status} to {path}: {content}")
        return content, reply.headers["Date"]


KIND = Kind(
    name="kubernetes",
    module=__name__,
    modules=(
        *(
            f"{_MODEL}.{name}"
            for name in ("fields", "kinds", "meta", "patches", "serve", "state", "status", "times")
        ),
        "fencepost.hunt.sim.unknown",
    ),
    port=PORT,
    nodes=3,
    image=Image(after="RUN useradd --system kubernetes\n"),
    needs=("python3",),
    command=_command,
    health=_health,
    version=_version,
    clocks={"wall": Clock(_wall)},
    user="kubernetes",
    grain_s=1.0,
    model="kubernetes",
    http=True,
)
