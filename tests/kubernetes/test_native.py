"""A real API server on loopback, if `kube-apiserver` and `etcd` are on the path: the model answers
as it does.

The test prints its seed; FENCEPOST_MODEL_SEED sets it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import pytest

from tests.hunt.models import kubernetes_real as real
from tests.hunt.models.kubernetes_requests import WATCH, Side

REQUESTS = 10_000

pytestmark = pytest.mark.skipif(
    bool(real.lacking()), reason=f"not on the path: {', '.join(real.lacking())}"
)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with real.api_server() as found:
        yield found


SPACES = ("kube-public", "kube-node-lease")
GROUPS = ("/apis/coordination.k8s.io/v1/namespaces/{}/leases", "/api/v1/namespaces/{}/configmaps",
          "/api/v1/namespaces/{}/endpoints")  # fmt: skip
EVERY = tuple(group.format(space) for group in GROUPS for space in SPACES)


def test_the_model_answers_random_requests_as_the_server_does(port: int) -> None:
    """Watches of every list last as long as the requests, and have equal events to the end."""
    seed = int(os.environ.get("FENCEPOST_MODEL_SEED") or time.time_ns() % 1_000_000)
    print(f"seed {seed}")
    model = real.Model()
    ours = Side(model.send, model.watch)
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(contextlib.closing(real.connection(port)))
        theirs = Side(real.sender(link), real.watcher(port))
        begun = "watch=true&timeoutSeconds=7200"
        heard = [
            (model.begin(path, begun),
             stack.enter_context(contextlib.closing(real.Stream(port, path, begun))))
            for path in EVERY
        ]  # fmt: skip
        counts, _ = real.compare(theirs, REQUESTS, seed, ours=ours)
        print(counts)
        assert counts["different"] == 0
        for expected, stream in heard:
            events = expected.take(time.time_ns()).splitlines(keepends=True)
            assert len(events) > 30
            assert theirs.events(stream.read(len(events))) == ours.events(events)
    assert counts["compared"] == REQUESTS
    assert counts[f"{WATCH} 200"] > REQUESTS // 25
    assert all(counts[f"PUT {status}"] > 25 for status in (200, 201, 400, 404, 409, 422))
    assert all(counts[f"PATCH {status}"] > 25 for status in (200, 404, 409, 422))
