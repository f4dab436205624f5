"""Executes a client's requests: reads by the znodes of its server, changes by the leader."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from fencepost.hunt.models.zookeeper import answers, operations
from fencepost.hunt.models.zookeeper.ensemble import Change, Ensemble, Member
from fencepost.hunt.models.zookeeper.errors import SESSION_EXPIRED, Refused
from fencepost.hunt.models.zookeeper.jute import text
from fencepost.hunt.models.zookeeper.requests import (
    CLOSE,
    MULTI,
    SET_WATCHES,
    SYNC,
    WRITES,
    Request,
)
from fencepost.hunt.models.zookeeper.tree import Author, Tree
from fencepost.hunt.models.zookeeper.watches import Watcher

Then = Callable[[bytes], None]
"""Takes the answer, once the client's server has learned of the change."""


class Client(Watcher, Protocol):
    """A connection, with its session and the ids as which its client has authenticated."""

    session: int
    ids: list[str]

    @property
    def server(self) -> Member: ...


def moved(ensemble: Ensemble, by: Client, request: Request) -> bool:
    """Whether the session was moved to another server; the leader notices that at the
    next request."""
    if request.type == CLOSE:
        return False
    at_leader = request.type in WRITES or by.server is ensemble.leader
    tracked = ensemble.sessions.all.get(by.session)
    return at_leader and tracked is not None and tracked.owner != by.server.index


def read(by: Client, request: Request) -> tuple[bytes, int]:
    """Return the answer to a request that changes nothing, and its error."""
    server = by.server
    try:
        if request.type == SET_WATCHES:
            server.watches.renew(server.tree, by, *request.fields)
            body = b""
        else:
            body = operations.read(server.tree, server.watches, request, by.ids, by)
    except Refused as error:
        return answers.answer(request.xid, server.zxid, error.code), error.code
    return answers.answer(request.xid, server.zxid, 0, body), 0


def change(ensemble: Ensemble, by: Client, request: Request, then: Then) -> int:
    """Let the leader make a change, or execute a sync; return the error."""
    body, error, apply = b"", 0, None
    if request.type == CLOSE:
        server = by.server
        ensemble.end(by.session, server, lambda: then(answers.answer(request.xid, server.zxid)))
        return 0
    if request.type == SYNC:
        body = text(request.fields[0])
    else:
        ensemble.zxid += 1
        body, error, apply = _make(ensemble, by, request)
    zxid = ensemble.zxid
    answer = answers.answer(request.xid, zxid, error, body)
    ensemble.made(Change(zxid, apply, 0, by.server, lambda: then(answer)))
    return error


def _make(
    ensemble: Ensemble, by: Client, request: Request
) -> tuple[bytes, int, Callable[[Tree], object] | None]:
    """Change the leader's znodes; return the answer's body, its error, and what other servers
    do."""
    leader = ensemble.leader
    assert leader is not None, "a change waits for a leader"
    leader.tree.begin()
    if by.session not in ensemble.sessions.all:
        return b"", SESSION_EXPIRED, None
    ms = leader.clock.ms(ensemble.world.now)
    author = Author(by.session, tuple(by.ids), ensemble.zxid, ms)
    apply = partial(_apply, request, author)
    try:
        return apply(leader.tree), 0, apply
    except Refused as error:
        return b"", error.code, None


def _apply(request: Request, author: Author, tree: Tree) -> bytes:
    if request.type == MULTI:
        return operations.multi(tree, request, author)
    return operations.write(tree, request, author)
