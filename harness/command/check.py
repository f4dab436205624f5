"""`fencepost check`: checks whether a user lock keeps the contract of clients."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fencepost.checker.verdict import Valid
from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import (
    ClientImage,
    Elector,
    EndsWith,
    HostsFile,
    LockOptions,
    OwnProgram,
    OwnServers,
    Promises,
    Remote,
    Requirements,
    Ship,
    with_settings,
)
from fencepost.harness.execute.contract import Trial
from fencepost.harness.execute.contract_steps import Found
from fencepost.harness.execute.elector_contract import ElectorTrial
from fencepost.harness.execute.run_once import run_once
from fencepost.harness.execute.running import Running
from fencepost.harness.execute.timed import Played
from fencepost.harness.results import results
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.userlock.resolve import LockRequest, resolve

_WORD: dict[Valid, str] = {True: "ok", False: "WRONG", "unknown": "-"}


@with_settings(("containers", "compose"))
def check(
    lock: Annotated[str, typer.Argument(help="The lock: mylock.py:MyLock, or a name.")] = "",
    servers: OwnServers = "",
    ends_with: EndsWith = "",
    promises: Promises = "",
    requirements: Requirements = None,
    program: OwnProgram = "",
    ship: Ship = None,
    elector: Elector = False,
    client_image: ClientImage = "",
    option: LockOptions = None,
    ttl: Annotated[str, typer.Option(help="The lease of a grant.")] = "2s",
    remote: Remote = "docker",
    hosts: HostsFile = None,
    **settings: Any,
) -> int:
    settings = {word: value for word, value in settings.items() if value is not None}
    beside = from_arguments.beside(servers, settings)
    asked = LockRequest(
        servers, ends_with, requirements, beside, program, ship, client_image, promises, elector
    )
    name, own = resolve(lock, asked)
    settings |= {"ttl": ttl, "concurrency": 2, "seed": 0, "nemesis": "pause:server,kill:client"}
    spec = from_arguments.spec(name, from_arguments.pairs(option), settings, own)
    screen.say(f"Checking {own.described if own else name}")
    folder = results.create(f"check-{spec.name}")
    found: list[Found] = []

    def play(running: Running) -> Played:
        trial = ElectorTrial(running) if spec.lock_type.elector else Trial(running)
        try:
            trial.play()
        finally:
            found.extend(trial.found)
        return Played()

    with (
        cluster_for([spec], screen.say, False, remote, hosts) as cluster,
        screen.progress(spec.name) as progress,
    ):
        ended = run_once(folder, spec, cluster, progress, [], play=play)
    if ended.failure is not None:
        raise ended.failure
    return _report(found, str(folder))


def _report(found: list[Found], folder: str) -> int:
    table = screen.table("", "", "", whole=1)
    for one in found:
        table.add_row(_WORD[one.valid], one.what, one.how)
    screen.console().print(table)
    wrong = sum(one.valid is False for one in found)
    words = "It keeps the contract." if not wrong else f"{wrong} to fix."
    screen.write(f"{words} Events of the clients: {folder}/history.jsonl")
    return EXIT[not wrong]
