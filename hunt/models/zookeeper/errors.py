"""The errors that ZooKeeper answers, by their codes (KeeperException.Code)."""

from __future__ import annotations

INCONSISTENCY, MARSHALLING, UNIMPLEMENTED, BAD_ARGUMENTS = -2, -5, -6, -8
NO_NODE, NO_AUTH, BAD_VERSION, NO_CHILDREN_FOR_EPHEMERALS = -101, -102, -103, -108
NODE_EXISTS, NOT_EMPTY, INVALID_ACL, AUTH_FAILED = -110, -111, -114, -115
SESSION_EXPIRED, NO_WATCHER = -112, -121


class Refused(Exception):
    """A request had no effect; `code` says why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
