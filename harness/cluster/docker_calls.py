"""Calls the Docker engine, through its SDK or its command, with timeouts and readable errors.

The engine may hang, die or send an invalid answer. So every call has a timeout, and each error
gives the problem, the cause and the remedy.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from requests.exceptions import ConnectionError, RequestException, Timeout
from urllib3.exceptions import HTTPError

from fencepost.harness.errors import Crashed

CALL_S = 60
"""Timeout of a call: on a busy machine, removing a container can take ten seconds."""
_LOOK_S = 0.2
# The SDK raises these for an answer that is not from a Docker engine.
_NONSENSE = (AttributeError, LookupError, TypeError, ValueError)
_THEN = "then run `fencepost heal` to remove what is left"
_HANGS = f"The engine hangs: restart it (`systemctl restart docker`); {_THEN}"


class Refused(Crashed):
    """The engine refuses a request, or does not answer."""


class Hung(Refused):
    """The engine runs, but did not answer in time."""


def client() -> docker.DockerClient:
    """Return the engine's SDK. Raise Refused if no engine answers."""
    with request("answer"):
        version = _api_version(os.environ.get("DOCKER_HOST", ""))
        return docker.from_env(version=version, timeout=CALL_S)


@cache
def _api_version(host: str) -> str:
    """Return the version of the API that both sides support, cached for all clients."""
    with contextlib.closing(docker.from_env(timeout=CALL_S)) as client:
        return str(client.api.api_version)


@contextmanager
def request(what: str) -> Iterator[None]:
    """Turn errors of SDK calls in the block into Refused ("Docker failed to WHAT: ...")."""
    try:
        yield
    except (DockerException, RequestException, HTTPError, OSError, *_NONSENSE) as error:
        # The SDK reads the engine's version first, and hides the cause of an error in that.
        hidden = error.__context__ if type(error) is DockerException else None
        found = hidden or error
        if isinstance(found, Timeout) or "timed out" in str(found):
            raise Hung(f"Docker failed to {what} within {CALL_S} s. {_HANGS}") from error
        raise Refused(f"Docker failed to {what}: {_describe(found)}") from error


def remove(container: Container) -> None:
    """Remove a container and its anonymous volumes; wait until it is removed. Call in `request`.

    Docker refuses if another call is removing the container, for example one that timed out while
    the engine hung. Then this retries for CALL_S.
    """
    end = time.monotonic() + CALL_S
    while True:
        try:
            container.remove(force=True, v=True)
        except NotFound:  # another call has removed it
            return
        except APIError as error:
            if not _under_way(error) or time.monotonic() > end:
                raise
            time.sleep(_LOOK_S)
        else:
            return


def _under_way(error: APIError) -> bool:
    conflict: bool = error.status_code == 409  # the SDK has no constant for it
    return conflict and "already in progress" in str(error)


def command(
    argv: Sequence[str], timeout_s: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command of the engine; return its output, with any exit code.

    Raises:
        Hung: it timed out after `timeout_s`, and was killed.
        Refused: the command does not exist.
    """
    what = " ".join(argv[:2])
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=timeout_s, **options
        )
    except subprocess.TimeoutExpired as error:
        then = _HANGS if argv[0].startswith("docker") else "Check for the cause, then retry"
        raise Hung(f"{what} timed out after {timeout_s:.0f} s. {then}") from error
    except OSError as error:
        raise Refused(f"cannot run {what}: {error.strerror}") from error


def _describe(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, APIError):
        return text
    if isinstance(error, ConnectionError | HTTPError):
        return f"no engine runs ({text}). Start it (for example: `systemctl start docker`); {_THEN}"
    if isinstance(error, _NONSENSE):
        return (
            f"its answer is invalid ({type(error).__name__}: {text[:200]}). Check that DOCKER_HOST "
            "names a Docker engine, and read the engine's log"
        )
    return text
