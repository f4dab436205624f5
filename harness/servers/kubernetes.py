"""Defines Kubernetes' API as the hunt's model of it answers, served by HTTP on nodes.

Debian has kube-apiserver as source only (kube_apiserver.py), and its build takes ten minutes. The
model has the objects by which leaders are elected, is compared with kube-apiserver 1.20, and
answers anything else with 501. The first server keeps the objects; the others forward requests to
it.
"""

from __future__ import annotations

from http.client import HTTPConnection

from fencepost.harness.servers import kubernetes_api
from fencepost.node import listen
from fencepost.node.kind import Clock, Image, Kind, Mark, Start
from fencepost.node.places import HOME
from fencepost.node.watch import Bounds

PORT = 6443
_FIRST = "kubernetes-1"
_TIMEOUT_S = 2.0
_MODEL = "fencepost.hunt.models.kubernetes"
_FILES = "fields", "kinds", "meta", "patches", "serve", "state", "status", "times", "watches"
_SERVE = (
    f'import sys; sys.path.insert(0, "{HOME}/lib"); from {_MODEL} import serve; '
    "serve.main(sys.argv[1:])"
)


def _command(start: Start) -> list[str]:
    keeps = f"{start.data}/objects.json"
    source = keeps if start.node == _FIRST else f"http://{_FIRST}:{PORT}"
    return ["python3", "-ISc", _SERVE, str(PORT), source, *start.listen]


def _link() -> HTTPConnection:
    return HTTPConnection(listen.own(), PORT, timeout=_TIMEOUT_S)


def _health() -> bool:
    """List objects, which the first server has to answer."""
    kubernetes_api.ask(_link(), "/api/v1/namespaces/default/configmaps")
    return True


def _version() -> str:
    return f"a model of kube-apiserver {kubernetes_api.version(_link())}"


def _wall(mark: Mark) -> Bounds:
    return kubernetes_api.wall(_link())


KIND = Kind(
    name="kubernetes",
    module=__name__,
    modules=(
        *(f"{_MODEL}.{name}" for name in _FILES),
        "fencepost.hunt.sim.unknown",
        kubernetes_api.__name__,
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
