"""Valkey, in the place of a Redis server: `--server redis=valkey`.

Debian bookworm has it among its backports. It takes Redis' options and speaks its protocol.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.harness.servers import redis
from fencepost.node.kind import Image, Start
from fencepost.node.places import HOME

_SERVER = f"{HOME}/valkey-server"
# The package brings a service of its own, and so only its program is taken: its name decides
# whether it is the server.
_STAGE = """\
FROM debian:bookworm-slim AS valkey
RUN apt-get update \\
 && site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -1) \\
 && echo "deb $site bookworm-backports main" > /etc/apt/sources.list.d/backports.list \\
 && apt-get update && cd /tmp && apt-get download valkey-tools/bookworm-backports \\
 && dpkg -x valkey-tools_*.deb /opt/valkey
"""


def _command(start: Start) -> list[str]:
    # Under libfaketime 0.9.10 it ends as it starts: its clock is set through its vDSO.
    settings = {**start.settings, "CLOCK": "real"}
    return redis.command(replace(start, settings=settings), _SERVER)


KIND = replace(
    redis.KIND,
    name="valkey",
    module=__name__,
    serves="redis",
    versions=("8.0",),
    image=Image(
        packages=("libatomic1", "libjemalloc2", "liblzf1", "libssl3"),
        stage=_STAGE,
        after=f"COPY --from=valkey /opt/valkey/usr/bin/valkey-check-rdb {_SERVER}\n",
    ),
    needs=(_SERVER, "redis-cli"),
    command=_command,
    faketime=False,
    model="",
)
