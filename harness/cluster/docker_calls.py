"""Asking the Docker engine, by its SDK or its command: an answer in time, or a sentence.

An engine that hangs, dies or answers what makes no sense is nobody's defect here. So every call has
a time limit, and whatever goes wrong within one ends in what was tried, what happened, what to do.
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
"""How long one call may take: on a busy machine a container is removed in ten seconds."""
_LOOK_S = 0.2
# What the SDK makes of an answer that is no answer of an engine.
_NONSENSE = (AttributeError, LookupError, TypeError, ValueError)
_THEN = "then `fencepost heal` removes what is left"
_HANGS = f"The engine hangs: restart it (`systemctl restart docker`); {_THEN}"


class Refused(Crashed):
    """The engine refuses what was asked, or does not answer."""


class Hung(Refused):
    """The engine is there, and does not answer in time."""


def client() -> docker.DockerClient:
    """The engine's SDK. Raise Refused if no engine answers."""
    with asked("answer"):
        spoken = _spoken(os.environ.get("DOCKER_HOST", ""))
        return docker.from_env(version=spoken, timeout=CALL_S)


@cache
def _spoken(host: str) -> str:
    """The version of the API that both sides speak. Each client would ask for it anew."""
    with contextlib.closing(docker.from_env(timeout=CALL_S)) as client:
        return str(client.api.api_version)


@contextmanager
def asked(what: str) -> Iterator[None]:
    """Raise Refused ("Docker does not WHAT") if the engine does not do what is asked within."""
    try:
        yield
    except (DockerException, RequestException, HTTPError, OSError, *_NONSENSE) as error:
        # The SDK looks at the engine's version first, and hides what goes wrong with that.
        hidden = error.__context__ if type(error) is DockerException else None
        found = hidden or error
        if isinstance(found, Timeout) or "timed out" in str(found):
            raise Hung(f"Docker does not {what}: nothing within {CALL_S} s. {_HANGS}") from error
        raise Refused(f"Docker does not {what}: {_describe(found)}") from error


def remove(container: Container) -> None:
    """Remove a container, and its volumes that have no name, within `asked`; return once it is
    gone.

    Docker refuses while it is at it for somebody else: for a command that has given up, say, when
    the engine hung. Then that is waited for, as long as one call may take.
    """
    end = time.monotonic() + CALL_S
    while True:
        try:
            container.remove(force=True, v=True)
        except NotFound:  # somebody was quicker
            return
        except APIError as error:
            if not _under_way(error) or time.monotonic() > end:
                raise
            time.sleep(_LOOK_S)
        else:
            return


def _under_way(error: APIError) -> bool:
    conflict: bool = error.status_code == 409  # it has no constant in the SDK
    return conflict and "already in progress" in str(error)


def command(
    argv: Sequence[str], timeout_s: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command that asks the engine; return what it printed, whatever its exit code.

    Raises:
        Hung: it was not over in time, and is ended.
        Refused: there is no such command.
    """
    what = " ".join(argv[:2])
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=timeout_s, **options
        )
    except subprocess.TimeoutExpired as error:
        then = _HANGS if argv[0].startswith("docker") else "Look what keeps it, and try again"
        raise Hung(f"{what} was not over within {timeout_s:.0f} s. {then}") from error
    except OSError as error:
        raise Refused(f"{what} cannot be run: {error.strerror}") from error


def _describe(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, APIError):
        return text
    if isinstance(error, ConnectionError | HTTPError):
        return f"no engine is there ({text}). Start it (`systemctl start docker`, say); {_THEN}"
    if isinstance(error, _NONSENSE):
        return (
            f"its answer makes no sense ({type(error).__name__}: {text[:200]}). Is it Docker that "
            "answers there? Look at DOCKER_HOST, and at the engine's log"
        )
    return text
