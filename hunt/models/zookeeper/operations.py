"""Executes requests on the tree: their answers, and the watches that they set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencepost.hunt.models.zookeeper import acls, answers, requests
from fencepost.hunt.models.zookeeper.errors import (
    BAD_ARGUMENTS,
    INCONSISTENCY,
    MARSHALLING,
    NO_AUTH,
    NO_WATCHER,
    Refused,
)
from fencepost.hunt.models.zookeeper.jute import buffer, text
from fencepost.hunt.models.zookeeper.requests import Acl, Request
from fencepost.hunt.models.zookeeper.tree import CONTAINER, WITH_TTL, Author, Tree
from fencepost.hunt.models.zookeeper.watches import ON_CHILDREN, ON_DATA, Watcher, Watches
from fencepost.hunt.sim.unknown import Unknown

_OK = 0


def write(tree: Tree, request: Request, by: Author) -> bytes:
    """Execute a request that changes the tree; return the body of its answer.

    Raises Refused if it changes nothing.
    """
    fields = request.fields
    match request.type:
        case requests.CREATE:
            return text(tree.create(by, *fields))
        case requests.CREATE_2:
            return _created(tree, tree.create(by, *fields))
        case requests.CREATE_CONTAINER:
            path, data, acl, flags = fields
            if flags != CONTAINER:
                raise Unknown("the model of ZooKeeper has no container with the flags of others")
            return _created(tree, tree.create(by, path, data, acl, flags, container=True))
        case requests.CREATE_TTL:
            if fields[3] not in WITH_TTL:
                raise Unknown("the model of ZooKeeper has no TTL with the flags of others")
            tree.create(by, *fields[:4])
        case requests.DELETE:
            tree.delete(by, *fields)
        case requests.SET:
            return answers.stat(tree.set(by, *fields).stat)
        case requests.SET_ACL:
            return answers.stat(tree.set_acl(by, *fields).stat)
        case requests.CHECK:
            tree.check(by, *fields)
    return b""


def _created(tree: Tree, path: str) -> bytes:
    return text(path) + answers.stat(tree.nodes[path].stat)


def multi(tree: Tree, request: Request, by: Author) -> bytes:
    """Execute all requests or none; return the body of the answer. Raises Refused at a znode whose
    flags promise a TTL that the request lacks."""
    parts: list[bytes] = []
    asked = [_part(one) for one in request.fields]
    for place, one in enumerate(asked):
        if _lacks_ttl(one):
            tree.undo()
            raise Refused(MARSHALLING)
        try:
            body = write(tree, one, by)
            answered = requests.CREATE_2 if one.type == requests.CREATE_CONTAINER else one.type
            parts.append(answers.part(answered, body))
        except Refused as error:
            tree.undo()
            left = len(asked) - place - 1
            codes = [_OK] * place + [error.code] + [INCONSISTENCY] * left
            return b"".join(map(answers.failed_part, codes)) + answers.END
    return b"".join(parts) + answers.END


def _part(one: Request) -> Request:
    """Return a request of a multi as the server reads it: the type of a new znode follows from its
    flags alone (MultiOperationRecord, Op.create)."""
    if one.type not in requests.CREATES or one.type == requests.CREATE_TTL:
        return one
    type = requests.CREATE_CONTAINER if one.fields[3] == CONTAINER else requests.CREATE
    return one._replace(type=type)


def _lacks_ttl(one: Request) -> bool:
    return one.type == requests.CREATE and one.fields[3] in WITH_TTL


def read(tree: Tree, watches: Watches, request: Request, ids: acls.Ids, watcher: Watcher) -> bytes:
    """Execute a request that changes nothing; return the body of its answer. Raises Refused."""
    path = request.fields[0]
    if request.type == requests.SYNC:
        return text(path)
    if path is None:
        raise Refused(MARSHALLING)
    return _READS[request.type](tree, watches, path, request.fields[1:], ids, watcher)


def _exists(
    tree: Tree, watches: Watches, path: str, more: Any, ids: acls.Ids, watcher: Watcher
) -> bytes:
    if "\0" in path:
        raise Refused(BAD_ARGUMENTS)
    if more[0]:
        watches.on_data(path, watcher)  # also on a znode that does not exist
    return answers.stat(tree.get(path).stat)


def _get(
    tree: Tree, watches: Watches, path: str, more: Any, ids: acls.Ids, watcher: Watcher
) -> bytes:
    node = tree.get(path)
    acls.check(node.acl, acls.READ, ids)
    if more[0]:
        watches.on_data(path, watcher)
    return buffer(node.data) + answers.stat(node.stat)


def _children(
    tree: Tree, watches: Watches, path: str, more: Any, ids: acls.Ids, watcher: Watcher
) -> bytes:
    node = tree.get(path)
    acls.check(node.acl, acls.READ, ids)
    if more[0]:
        watches.on_children(path, watcher)
    return answers.children(node.names())


def _children_2(
    tree: Tree, watches: Watches, path: str, more: Any, ids: acls.Ids, watcher: Watcher
) -> bytes:
    return _children(tree, watches, path, more, ids, watcher) + answers.stat(tree.get(path).stat)


def _acl(
    tree: Tree, watches: Watches, path: str, more: Any, ids: acls.Ids, watcher: Watcher
) -> bytes:
    node = tree.get(path)
    acls.check(node.acl, acls.READ | acls.ADMIN, ids)
    try:
        acls.check(node.acl, acls.ADMIN, ids)
        shown = node.acl
    except Refused as error:
        assert error.code == NO_AUTH
        shown = [_masked(one) for one in node.acl]
    return answers.acl(shown, node.stat)


def _check_watches(
    tree: Tree, watches: Watches, path: str, more: Any, ids: acls.Ids, watcher: Watcher
) -> bytes:
    kinds = _kinds(more[0])
    if not path.startswith("/"):
        raise Refused(MARSHALLING)
    if not watches.has(path, kinds):
        raise Refused(NO_WATCHER)
    return b""


def _remove_watches(
    tree: Tree, watches: Watches, path: str, more: Any, ids: acls.Ids, watcher: Watcher
) -> bytes:
    if not watches.remove(path, watcher, _kinds(more[0])):
        raise Refused(NO_WATCHER)
    return b""


def _kinds(number: int) -> int:
    if number not in (ON_CHILDREN, ON_DATA, ON_CHILDREN | ON_DATA):
        raise Refused(MARSHALLING)
    return number


def _masked(one: Acl) -> Acl:
    """Hide the password of a digest from one who may not administer the znode."""
    if one.scheme != "digest":
        return one
    return one._replace(id=f"{(one.id or '').partition(':')[0]}:x")


def _lacks(*_: Any) -> bytes:
    raise Unknown("the model of ZooKeeper has no check outside of a multi")


_READS: dict[int, Callable[..., bytes]] = {
    requests.EXISTS: _exists,
    requests.GET: _get,
    requests.CHILDREN: _children,
    requests.CHILDREN_2: _children_2,
    requests.GET_ACL: _acl,
    requests.CHECK: _lacks,
    requests.CHECK_WATCHES: _check_watches,
    requests.REMOVE_WATCHES: _remove_watches,
}
