"""Defines Valkey, which replaces a Redis server: `--server redis=valkey`.

It is in Debian bookworm's backports. It has Redis' options and protocol.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.harness.servers import redis
from fencepost.node.kind import Image, Start
from fencepost.node.places import HOME

_SERVER = f"{HOME}/valkey-server"
# The package installs a service, so only its program is extracted. The program decides by its name
# whether it runs as the server.
_STAGE = """\
FROM debian:bookworm-slim AS valkey
RUN apt-get update \\
 && site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -1) \\
 && echo "deb $site bookworm-backports main" > /etc/apt/sources.list.d/backports.list \\
 && apt-get update && cd /tmp && apt-get download valkey-tools/bookworm-backports \\
 && dpkg -x valkey-tools_*.deb /opt/valkey
"""


def _command(start: Start) -> list[str]:
    # It crashes under libfaketime 0.9.10, so its clock is changed through its vDSO.
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
