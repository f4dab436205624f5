"""Builds the nodes' image: a base, pulled or made here, and one Dockerfile on top of it.

The tag of the image is a hash of its inputs, so it is rebuilt exactly when they change.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import docker
from docker.errors import ImageNotFound

from fencepost.harness.cluster import docker_calls, libraries, nodecode
from fencepost.harness.cluster.docker_engine import Say, install
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.package import PACKAGE
from fencepost.harness.servers.kinds import KINDS

BASE = "debian:bookworm-slim"
REPOSITORY = "fencepost-node"
PUBLISHED = "FENCEPOST_IMAGE"
"""The environment variable with the registry of the nodes' image, HOST/NAME without a tag. If the
image is missing on this machine, it is pulled from there."""
COMPOSE = PACKAGE / "compose"

_REGISTRY_S, _PULL_S = 8.0, 600.0
_BUILD_S = 3600.0
# Use the host's network: some firewalls keep a bridge from the package mirrors.
_DOCKER_BUILD = ("docker", "build", "--network", "host")
_LABEL, _BASE_LABEL = "fencepost.libraries", "fencepost.base"


def ensure(say: Say, whole: bool = False) -> str:
    """Return the image's name. Build it if it is missing; with `whole`, also if it lacks a library.

    Raises:
        Crashed: the build failed; the text has the end of the output.
    """
    name = f"{REPOSITORY}:{_fingerprint()}"
    if not there(name) and (published := os.environ.get(PUBLISHED)):
        _fetch(f"{published}:{_fingerprint()}", name, say)
    if built(whole) is None:
        _build(name, say)
    return name


def built(whole: bool = False) -> str | None:
    """Return the image's name; None if it must be built, with `whole` also if it lacks a library.

    Raises:
        Crashed: Docker does not answer.
    """
    name = f"{REPOSITORY}:{_fingerprint()}"
    if not there(name) or (whole and held(name) != set(libraries.names())):
        return None
    return name


def _fetch(published: str, name: str, say: Say) -> None:
    """Pull the image with the same inputs from a registry; if that fails, it is built here."""
    if _pull(published, say):
        repository, _, tag = name.partition(":")
        with _client(f"name the image {name}") as client:
            client.images.get(published).tag(repository, tag)
    else:
        say(f"Cannot pull {published}, so the image is built here")


def held(name: str) -> set[str]:
    """Return the libraries under test that an image contains."""
    return set(_label(name, _LABEL).split(","))


def base(name: str) -> str:
    """Return the base of an image: its digest, or that it was made on this machine."""
    return _label(name, _BASE_LABEL) or "not recorded"


def _label(name: str, label: str) -> str:
    with _client(f"show the image {name}") as client:
        return str(client.images.get(name).labels.get(label, ""))


def must_hold(name: str, wanted: Iterable[str]) -> None:
    """Raise BadArguments, with the libraries that exist, if the image lacks one of these."""
    in_it = held(name)
    lacking = sorted(set(wanted) - in_it)
    if lacking:
        raise BadArguments(
            f"{', '.join(lacking)} is not in the nodes' image: it could not be fetched during the "
            "build. Run `fencepost cluster build` to retry and see the error. "
            f"In the image: {', '.join(sorted(in_it & set(libraries.names()))) or 'none'}"
        )


def _fingerprint() -> str:
    parts = {"Dockerfile": dockerfile().encode(), **nodecode.files()}
    for file in (COMPOSE / "requirements.txt", *libraries.inputs()):
        parts[str(file.relative_to(PACKAGE))] = file.read_bytes()
    digest = hashlib.sha256()
    for name, content in sorted(parts.items()):
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()[:12]


def dockerfile() -> str:
    """Return the text of compose/Dockerfile with the additions of each kind of server."""
    images = [kind.image for kind in KINDS.values()]
    packages = sorted({package for image in images for package in image.packages})
    parts = {
        "@stages": "\n".join(image.stage for image in images if image.stage),
        "@before": "".join(image.before for image in images),
        "@packages": " ".join(packages),
        "@after": "".join(image.after for image in images),
    }
    text = (COMPOSE / "Dockerfile").read_text()
    for mark, part in parts.items():
        text = text.replace(mark, part.strip())
    return text


def there(name: str) -> bool:
    """Return whether this machine has the image."""
    with _client(f"look for the image {name}") as client:
        try:
            client.images.get(name)
        except ImageNotFound:
            return False
    return True


@contextmanager
def _client(what: str) -> Iterator[docker.DockerClient]:
    """Yield the engine's client; an error in the block raises Crashed ("Docker failed to WHAT")."""
    with contextlib.closing(docker_calls.client()) as client, docker_calls.request(what):
        yield client


def _digest() -> str | None:
    """Return the base with its digest in the registry; None if it was made on this machine."""
    with _client(f"show the image {BASE}") as client:
        known = client.images.get(BASE).attrs.get("RepoDigests") or []
    return next((str(one) for one in known), None)


def _base(say: Say) -> None:
    if there(BASE) or _pull(BASE, say):
        return
    if shutil.which("debootstrap") is None:
        if os.geteuid() != 0:
            raise Crashed(
                f"cannot pull {BASE} (no registry answers), and cannot make it, because "
                "debootstrap is not installed. Connect to a registry, or install debootstrap."
            )
        install(say, "debootstrap")
    say(f"No registry answers: making {BASE} with debootstrap")
    with tempfile.TemporaryDirectory(prefix="fencepost-base-") as folder:
        # The base is made whole or not at all, so dpkg does not wait for the disk.
        _must(
            ["debootstrap", "--variant=minbase", "bookworm", folder],
            "debootstrap",
            os.environ | {"DPKG_FORCE": "unsafe-io"},
        )
        Path(folder, "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")
        repository, tag = BASE.split(":")
        with (
            # Its block closes the pipe, so that tar ends if Docker fails.
            subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE) as tar,
            _client(f"take {BASE}") as client,
        ):
            client.api.import_image_from_stream(tar.stdout, repository=repository, tag=tag)
        if tar.returncode:
            raise Crashed(f"cannot make {BASE}: tar of {folder} failed")


def _pull(image: str, say: Say) -> bool:
    """Pull an image; give up if the registry does not answer for a few seconds."""
    pull = subprocess.Popen(
        ["docker", "pull", image], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert pull.stdout
    with selectors.DefaultSelector() as selector:
        selector.register(pull.stdout, selectors.EVENT_READ)
        if not selector.select(_REGISTRY_S) or not os.read(pull.stdout.fileno(), 1):
            pull.kill()
            pull.wait()
            return False
    say(f"Pulling {image}")
    try:
        return pull.wait(_PULL_S) == 0
    except subprocess.TimeoutExpired:
        pull.kill()
        pull.wait()
        return False


def _build(name: str, say: Say) -> None:
    say("Building the nodes' image (some minutes, once)")
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-image-") as scratch,
        ThreadPoolExecutor(1) as pool,
    ):
        started = time.monotonic()
        preparing = pool.submit(_prepare, say)
        context = Path(scratch)
        nodecode.write(context / "node")
        pins = COMPOSE / "requirements.txt"
        (context / "requirements.txt").write_text(libraries.without_hashes(pins))
        libraries.download(pins, context / "wheels", "--only-binary=:all:")
        left_out = libraries.fetch(context, say)
        fetched = [library for library in libraries.names() if library not in left_out]
        text = preparing.result()
        (context / "Dockerfile").write_text(text)
        build(
            name, scratch,
            "--label", f"{_LABEL}={','.join(fetched)}",
            "--label", f"{_BASE_LABEL}={_digest() or f'{BASE}, made here by debootstrap'}",
        )  # fmt: skip
        with _client(f"name the image {name}") as client:
            client.images.get(name).tag(REPOSITORY, "latest")
        say(f"Built {name} in {time.monotonic() - started:.0f} s")


def _prepare(say: Say) -> str:
    """Get the base of the nodes' image, and build the parts that need no file of the context: the
    build of the whole finds them in Docker's cache. Return the image's Dockerfile."""
    _base(say)
    text, environment = pinned(dockerfile()), _builder()
    with ThreadPoolExecutor() as pool:
        for beginning in beginnings(text):
            # An error is that of the build of the whole, which says it.
            pool.submit(_run, [*_DOCKER_BUILD, "-"], environment, beginning)
    return text


def beginnings(text: str) -> list[str]:
    """Return the beginning of each stage of a Dockerfile, up to its first COPY."""
    stages = ["FROM " + stage for stage in re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]]
    return [re.split(r"^COPY ", stage, flags=re.MULTILINE)[0] for stage in stages]


def pinned(text: str) -> str:
    """Return a Dockerfile with the digest of the base instead of its tag, by which the build would
    ask the registry for its current meaning."""
    return text.replace(f"FROM {BASE}", f"FROM {_digest() or BASE}")


def build(name: str, context: str, *options: str) -> None:
    """Build an image from a folder. Raises Crashed with the end of the output."""
    _must([*_DOCKER_BUILD, "-t", name, *options, context], "docker build", _builder())


def _builder() -> dict[str, str]:
    """Return the environment of a build: without its plugin, BuildKit is an error."""
    buildx = _run(["docker", "buildx", "version"]).returncode == 0
    return dict(os.environ) if buildx else os.environ | {"DOCKER_BUILDKIT": "0"}


def _must(command: list[str], what: str, environment: dict[str, str] | None = None) -> None:
    done = _run(command, environment)
    if done.returncode:
        output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise Crashed(
            f"{what} failed with exit code {done.returncode}. The end of its output:\n{output}"
        )


def _run(
    command: list[str], environment: dict[str, str] | None = None, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    return docker_calls.command(command, _BUILD_S, env=environment, input=text)
