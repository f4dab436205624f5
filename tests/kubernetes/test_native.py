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

REQUESTS = 10_000

pytestmark = pytest.mark.skipif(
    bool(real.lacking()), reason=f"not on the path: {', '.join(real.lacking())}"
)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with real.api_server() as found:
        yield found


def test_the_model_answers_random_requests_as_the_server_does(port: int) -> None:
    seed = int(os.environ.get("FENCEPOST_MODEL_SEED") or time.time_ns() % 1_000_000)
    print(f"seed {seed}")
    with contextlib.closing(real.connection(port)) as link:
        counts, _ = real.compare(real.sender(link), REQUESTS, seed)
    print(counts)
    assert counts["different"] == 0
    assert counts["compared"] == REQUESTS
    assert all(counts[f"PUT {status}"] > 25 for status in (200, 201, 400, 404, 409, 422))
    assert all(counts[f"PATCH {status}"] > 25 for status in (200, 404, 409, 422))
