"""`fencepost check`: does a user lock keep the contract of clients?

With `--s3`: can objects of an S3-like service be locks?
"""

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
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.conditional_writes import ConditionalWrites
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
from fencepost.workloads.transport.s3_link import S3Link, keys_of

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
    s3: Annotated[
        str, typer.Option(help="Check conditional writes of this service: its URL/BUCKET instead.")
    ] = "",
    **settings: Any,
) -> int:
    if s3:
        return _check_s3(s3, lock or servers or program)
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
    events = f" Events of the clients: {folder}/history.jsonl"
    return _report(found, "It keeps the contract.", events)


def _check_s3(url: str, beside: str) -> int:
    if beside:
        raise BadArguments(f"--s3 checks a service, not the lock {beside}: leave one of them out")
    try:
        trial = ConditionalWrites(S3Link(url, keys_of()), screen.say)
    except ValueError as error:
        raise BadArguments(f"--s3: {error}") from error
    screen.say(f"Checking conditional writes at {url}")
    trial.play()
    return _report(trial.found, "Its objects can be locks.")


def _report(found: list[Found], kept: str, more: str = "") -> int:
    table = screen.table("", "", "", whole=1)
    for one in found:
        table.add_row(_WORD[one.valid], one.what, one.how)
    screen.console().print(table)
    wrong = sum(one.valid is False for one in found)
    screen.write(f"{f'{wrong} to fix.' if wrong else kept}{more}")
    return EXIT[not wrong]
