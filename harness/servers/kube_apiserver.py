"""Defines real API servers of Kubernetes (kube-apiserver), each with a member of their etcd.

Nothing else of Kubernetes runs: they store the objects by which leaders are elected. They speak
HTTPS on loopback, with certificates that they sign themselves, and know one token (`TOKEN`), which
may do everything. Clients speak plain HTTP to a front on the node (kube_front.py), as they do to
the model. Debian has the source only: see `LAYER`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path

from fencepost.harness.servers import etcd, kube_front, kubernetes_api
from fencepost.node import listen
from fencepost.node.kind import Clock, Image, Kind, Layer, Mark, Start
from fencepost.node.places import HOME, PROGRAM_PATH
from fencepost.node.watch import Bounds

PORT = 6443
BEHIND = 6444
"""The port of HTTPS, on loopback."""
TOKEN = "fencepost"
_ETCD, _ETCD_PEER = 2379, 2380
_NODES = 3
_TIMEOUT_S = 2.0
_PROGRAM = f"{HOME}/kube-apiserver"
_FRONT = (
    f'import sys; sys.path.insert(0, "{HOME}/lib"); from {kube_front.__name__} import main; '
    "main(sys.argv[1:])"
)

LAYER = Layer(
    stage="""\
FROM debian:bookworm-slim
RUN apt-get update \\
 && site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -1) \\
 && echo "deb-src $site bookworm main" > /etc/apt/sources.list.d/source.list \\
 && apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \\
      dpkg-dev golang-go make procps rsync which \\
 && cd /usr/src && apt-get source --download-only kubernetes \\
 && dpkg-source --no-check -x kubernetes_*.dsc kubernetes && rm kubernetes_*
RUN cd /usr/src/kubernetes && mkdir -p .go/src/k8s.io \\
 && ln -s ../../.. .go/src/k8s.io/kubernetes \\
 && GOPATH=$PWD/.go CGO_ENABLED=0 make WHAT=cmd/kube-apiserver \\
 && cp _output/bin/kube-apiserver / && rm -r /usr/src/kubernetes
""",
    lines=f"""\
COPY --from=@layer /kube-apiserver {_PROGRAM}
""",
    what="kube-apiserver from Debian's source (some ten minutes, once)",
)


def flags(folder: str, stores: Sequence[str], address: str, port: int = PORT) -> list[str]:
    """Return the arguments of an API server that keeps its own files in this folder.

    `stores` are the URLs of its etcd. The key that it makes for HTTPS also signs the tokens of
    service accounts, of which there are none.
    """
    key = f"{folder}/certificates/apiserver.key"
    Path(folder, "tokens.csv").write_text(f"{TOKEN},fencepost,1\n")
    return [
        "--etcd-servers", ",".join(stores), "--cert-dir", f"{folder}/certificates",
        "--secure-port", str(port), "--bind-address", address,
        # Endpoints of itself, which it would renew every 10 s, are of no use.
        "--endpoint-reconciler-type", "none",
        "--service-account-issuer", "https://kubernetes.default.svc",
        "--service-account-key-file", key, "--service-account-signing-key-file", key,
        "--token-auth-file", f"{folder}/tokens.csv", "--authorization-mode", "AlwaysAllow",
        "--service-cluster-ip-range", "10.0.0.0/24",
        "--disable-admission-plugins", "ServiceAccount",
    ]  # fmt: skip


def _command(start: Start) -> list[str]:
    """Return the command of etcd, whose children are the front, and a loop that starts the API
    server whenever it has ended.

    An API server ends if it reaches no quorum of etcd when it starts.
    """
    count = int(start.settings.get("SERVERS", str(_NODES)))
    stores = [f"http://127.0.0.1:{_ETCD}"]
    serve = [PROGRAM_PATH, "launch", _PROGRAM, *flags(start.data, stores, "127.0.0.1", BEHIND)]
    front = ["python3", "-ISc", _FRONT, str(PORT), str(BEHIND), TOKEN, *start.listen]
    dies_with = ["setpriv", "--pdeathsig", "KILL"]
    again = f"while :; do {shlex.join([*dies_with, *serve])}; sleep 0.5; done"
    beside = ([*dies_with, "sh", "-c", again], [*dies_with, *front])
    children = "".join(f"{shlex.join(one)} & " for one in beside)
    return ["sh", "-c", f"{children}exec {_store(start, count)}"]


def _store(start: Start, count: int) -> str:
    node = start.node
    members = ",".join(
        f"kubernetes-{n}=http://kubernetes-{n}:{_ETCD_PEER}" for n in range(1, count + 1)
    )
    return shlex.join([
        "etcd", "--name", node, "--data-dir", f"{start.data}/etcd", "--logger", "zap",
        "--listen-client-urls", f"http://127.0.0.1:{_ETCD}",
        "--advertise-client-urls", f"http://127.0.0.1:{_ETCD}",
        "--listen-peer-urls", f"http://{start.listen[0]}:{_ETCD_PEER}",
        "--initial-advertise-peer-urls", f"http://{node}:{_ETCD_PEER}",
        "--initial-cluster-state", "new", "--initial-cluster", members,
        "--max-wals", "2", "--max-snapshots", "2",
    ])  # fmt: skip


def _link() -> HTTPConnection:
    return HTTPConnection(listen.own(), PORT, timeout=_TIMEOUT_S)


def _health() -> bool:
    """Read by a quorum what every write needs: the namespace, which the server makes itself."""
    kubernetes_api.ask(_link(), "/api/v1/namespaces/default")
    return True


def _version() -> str:
    return f"kube-apiserver {kubernetes_api.version(_link())} on {etcd.KIND.version()}"


def _wall(mark: Mark) -> Bounds:
    return kubernetes_api.wall(_link())


KIND = Kind(
    name="kube-apiserver",
    module=__name__,
    modules=(kubernetes_api.__name__, kube_front.__name__),
    port=PORT,
    peers=(_ETCD_PEER,),
    nodes=_NODES,
    versions=("1.20",),
    image=Image(packages=("etcd-server",), layer=LAYER),
    needs=(_PROGRAM, "etcd", "python3"),
    command=_command,
    health=_health,
    leads=etcd.KIND.leads,
    version=_version,
    clocks={"wall": Clock(_wall)},
    user="kubernetes",
    # Stop and kill the API server and its front with etcd, as if the machine failed.
    forks=True,
    grain_s=1.0,
    crash_lines=etcd.KIND.crash_lines,
    around_s=20.0,
    serves="kubernetes",
    http=True,
)
