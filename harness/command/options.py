"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[str, typer.Argument(help="A run's folder, or TEST, or TEST/TIME.")]
Seed = Annotated[str | None, typer.Option(help="The number from which all random choices follow.")]
LeaveUp = Annotated[bool, typer.Option("--leave-db-running", help="Leave the nodes up afterwards.")]
Remote = Annotated[str, typer.Option(help="How nodes are reached: docker, ssh.")]
HostsFile = Annotated[
    Path | None,
    typer.Option("--hosts", help="A TOML file of hosts to use for nodes, by ssh (docs/ssh.md)."),
]
Servers = Annotated[
    list[str] | None,
    typer.Option(
        "--server", metavar="KIND=VERSION", help="Another version of the servers, etcd=3.4 say."
    ),
]
