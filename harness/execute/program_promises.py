"""Adds to a run the promises that its clients' program names when it is ready."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fencepost import runfiles
from fencepost.harness.clients.worker import Worker
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.results import results
from fencepost.harness.spec.spec import Spec
from fencepost.harness.userlock import promises


def adopt(folder: Path, spec: Spec, workers: Iterable[Worker]) -> Spec:
    """Return the spec with the promises that the clients name, and write them to test.json.

    Nothing changes if they name none, or if the run's promises are known already.

    Raises:
        Crashed: a client names something that is no promise.
    """
    own = spec.own
    if own is None or own.bundle is not None or own.promises is not None:
        return spec
    named = next((one.promises for one in workers if one.promises is not None), None)
    if named is None:
        return spec
    try:
        promised = promises.read(named) or ()
    except BadArguments as error:
        raise Crashed(f"{own.described} is ready, and {error}") from error
    spec = replace(spec, own=replace(own, promises=promised))
    write(folder, spec)
    return spec


def write(folder: Path, spec: Spec) -> None:
    """Write the promises of a spec to the test.json that the folder has."""
    path = folder / runfiles.TEST
    described, said = runfiles.test(path), spec.to_json()
    results.write(path, {**described, "lock": said["lock"], "promises": said["promises"]})
