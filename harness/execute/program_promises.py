"""Adds to a run the promises that its clients' program names when it is ready."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fencepost import runfiles
from fencepost.harness.clients.worker import Worker
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.results import run_facts
from fencepost.harness.spec.spec import Spec
from fencepost.harness.userlock import promises


def adopt(folder: Path, spec: Spec, workers: Iterable[Worker]) -> Spec:
    """Return the spec with the promises that the clients name, and write them to run.json.

    Nothing changes if they name none, or if the run's promises are known already.

    Raises:
        Crashed: a client names something that is no promise.
    """
    named = next((one.promises for one in workers if one.promises is not None), None)
    adopted = named_by(spec, named)
    if adopted is not spec:
        write(folder, adopted)
    return adopted


def named_by(spec: Spec, named: Iterable[str] | None) -> Spec:
    """Return the spec with the promises that a client names; the same spec if it names none
    (None), or if they are known already. Raises Crashed if something named is no promise."""
    own = spec.own
    if named is None or own is None or own.bundle is not None or own.promises is not None:
        return spec
    try:
        promised = promises.read(named) or ()
    except BadArguments as error:
        raise Crashed(f"{own.described} is ready, and {error}") from error
    return replace(spec, own=replace(own, promises=promised))


def write(folder: Path, spec: Spec) -> None:
    """Note the promises of a spec in the run.json of the run in this folder."""
    said, asked = spec.to_json(), runfiles.test(folder / runfiles.TEST).get("lock") or {}
    lock = {name: value for name, value in said["lock"].items() if asked.get(name) != value}
    run_facts.learn(folder, lock=lock, promises=said["promises"])
