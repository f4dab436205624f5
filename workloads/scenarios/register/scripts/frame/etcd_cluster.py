"""Three members of etcd as local processes, and requests to their JSON gateway."""

import json
import os
import tempfile
import urllib.request
from contextlib import ExitStack, contextmanager

from frame.processes import free_ports, running


@contextmanager
def etcd_cluster(front=lambda port: port):
    """Run three members. `front` returns, for the port of a member, the one that the others use."""
    ports, peers = free_ports(3), free_ports(3)
    urls = [f"http://127.0.0.1:{front(peer)}" for peer in peers]
    cluster = ",".join(f"m{n}={url}" for n, url in enumerate(urls))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
        members = []
        for n, (port, peer) in enumerate(zip(ports, peers, strict=True)):
            here = f"http://127.0.0.1:{port}"
            command = [
                "etcd", "--name", f"m{n}", "--data-dir", os.path.join(folder, f"m{n}"),
                "--listen-client-urls", here, "--advertise-client-urls", here,
                "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                "--initial-advertise-peer-urls", urls[n], "--initial-cluster", cluster,
            ]  # fmt: skip
            server = ends.enter_context(running(command))
            members.append(server._replace(port=port))
        yield members


def ask(port, path, body, limit_s=1.0):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=limit_s) as answer:
        return json.loads(answer.read())


def leader(members):
    """Return the number, from 1, of the member that all of these follow; None if there is none."""
    said = [ask(one.port, "/v3/maintenance/status", {}) for one in members]
    ids = [one["header"]["member_id"] for one in said]
    leaders = {one.get("leader") for one in said}
    return ids.index(leaders.pop()) + 1 if len(leaders) == 1 and leaders <= set(ids) else None
