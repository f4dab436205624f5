"""Access control lists: `world:anyone`, `digest` and `auth`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from fencepost.hunt.models.zookeeper.errors import AUTH_FAILED, INVALID_ACL, NO_AUTH, Refused
from fencepost.hunt.models.zookeeper.requests import Acl
from fencepost.hunt.sim.unknown import Unknown

READ, WRITE, CREATE, DELETE, ADMIN = (1 << bit for bit in range(5))
ALL = (Acl(31, "world", "anyone"),)
_LACKS = ("ip", "sasl", "x509", "super")

Ids = Sequence[str]
"""The digests as which a connection has authenticated."""


def _must_know(scheme: str | None) -> None:
    if scheme in _LACKS:
        raise Unknown(f"the model of ZooKeeper has no authentication by {scheme}")


def log_in(scheme: str | None, secret: bytes | None) -> str:
    """Return the id of a user. Raises Refused."""
    _must_know(scheme)
    if scheme != "digest":
        raise Refused(AUTH_FAILED)
    user, _, _ = (secret or b"").decode(errors="replace").partition(":")
    made = base64.b64encode(hashlib.sha1(secret or b"").digest()).decode()
    return f"{user}:{made}"


def fixed(acls: Sequence[Acl], ids: Ids) -> tuple[Acl, ...]:
    """Return the list that a znode gets (PrepRequestProcessor.fixupACL). Raises Refused."""
    found: list[Acl] = []
    for one in dict.fromkeys(acls):
        if one.scheme == "world" and one.id == "anyone":
            found.append(one)
        elif one.scheme == "auth":
            if not ids:
                raise Refused(INVALID_ACL)
            found += [Acl(one.perms, "digest", id) for id in ids]
        else:
            _must_know(one.scheme)
            if one.scheme != "digest" or (one.id or "").count(":") != 1:
                raise Refused(INVALID_ACL)
            found.append(one)
    if not found:
        raise Refused(INVALID_ACL)
    return tuple(found)


def check(acls: Sequence[Acl], perms: int, ids: Ids) -> None:
    """Raise Refused unless one of these ids has one of these permissions."""
    if acls is ALL:
        return
    for one in acls:
        if one.perms & perms and (one.scheme == "world" or one.id in ids):
            return
    raise Refused(NO_AUTH)
