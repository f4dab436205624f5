"""etcd through its JSON gateway: the few calls that a lock needs, on 3.4 and 3.5 alike.

The gateway is used instead of gRPC because it needs no generated code: the Python clients on gRPC
are unmaintained (etcd3) or asyncio only (aetcd), and grpcio is larger than all other clients
together. It supports watches and keepalives as well. Integers of 64 bits come as strings; zero and
false are left out (proto3's JSON mapping).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from fencepost.workloads.contract.lock import Failed, Indeterminate
from fencepost.workloads.transport.deferred import Deferred

if TYPE_CHECKING:
    import urllib3
    from urllib3 import exceptions
else:
    urllib3, exceptions = Deferred("urllib3"), Deferred("urllib3.exceptions")

# Final refusals of etcd (gRPC's codes): invalid, not found, exists, precondition, range.
_REFUSED = (3, 5, 6, 9, 11)


@lru_cache(4096)
def text(data: str) -> str:
    """Encode in base64, as the gateway requires for keys and values."""
    return base64.b64encode(data.encode()).decode()


def plain(data: str) -> str:
    return base64.b64decode(data).decode()


def after(prefix: str) -> str:
    """Return the end of the range of all keys with this prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def key_is(key: str, create_revision: int) -> dict[str, Any]:
    """Return a comparison: the key was created at that revision, and exists; 0: it does not
    exist."""
    return {
        "key": text(key),
        "target": "CREATE",
        "result": "EQUAL",
        "create_revision": str(create_revision),
    }


@lru_cache(64)
def _timeout(connect_s: float, read_s: float) -> urllib3.Timeout:
    return urllib3.Timeout(connect=connect_s, read=read_s)


def pool(host: str, port: int) -> urllib3.HTTPConnectionPool:
    """Return HTTP connections to a server; a request is sent once."""
    once = urllib3.Retry(total=False, redirect=False)
    return urllib3.HTTPConnectionPool(host, port, maxsize=4, retries=once)


class Gateway:
    """One client of a cluster: asks one server at a time, the next if one does not answer.

    `timeout_s` is for one request to one server. `now` gives ns. `connect` gives HTTP connections
    to a server; None: urllib3's.
    """

    def __init__(
        self,
        addresses: Sequence[tuple[str, int]],
        timeout_s: float,
        now: Callable[[], int],
        connect: Callable[[str, int], Any] | None = None,
    ) -> None:
        self._pools = [(connect or pool)(host, port) for host, port in addresses]
        self._timeout_s = timeout_s
        self._now = now
        self._at = 0

    def call(self, path: str, body: dict[str, Any]) -> Any:
        """POST /v3/<path>; return the decoded answer, of a stream the first message.

        Raises Failed "unreachable" if no server received the request, Indeterminate if it may have
        been carried out, Failed "refused" with etcd's message if it was refused.
        """
        reason = ""
        for _ in self._pools:
            pool = self._pools[self._at]
            try:
                answer = self._post(pool, path, body, self._timeout_s)
                return read(pool.host, path, answer.status, answer.data)
            except (exceptions.NewConnectionError, exceptions.ConnectTimeoutError) as error:
                reason = f"{pool.host}: {error}"
                self._next(pool)
            except exceptions.HTTPError as error:
                self._next(pool)
                raise Indeterminate("timeout", f"{pool.host}: {path}: {error}") from error
            except Indeterminate:
                self._next(pool)
                raise
        raise Failed("unreachable", reason)

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        """Do the same as `call` for a request that may be repeated: every server is tried. Failed
        if none answers."""
        for _ in self._pools:
            try:
                return self.call(path, body)
            except Indeterminate as error:
                why = error.text
        raise Failed("unreachable", why)

    def _next(self, pool: urllib3.HTTPConnectionPool) -> None:
        if self._pools[self._at] is pool:
            self._at = (self._at + 1) % len(self._pools)

    def _post(
        self,
        pool: urllib3.HTTPConnectionPool,
        path: str,
        body: dict[str, Any],
        read_s: float,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        return pool.request(
            "POST",
            f"/v3/{path}",
            body=msgspec.json.encode(body),
            timeout=_timeout(self._timeout_s, read_s),
            preload_content=not stream,
        )

    def wait_deleted(self, key: str, revision: int, timeout_s: float) -> bool:
        """Wait until `key` is deleted, at `revision` or later; False if that was not seen in time.

        A silent server may be cut off from the others, so the request is repeated elsewhere.
        """
        pool = self._pools[self._at]
        wanted = {"key": text(key), "start_revision": str(revision), "filters": ["NOPUT"]}
        try:
            answer = self._post(pool, "watch", {"create_request": wanted}, timeout_s, stream=True)
        except exceptions.HTTPError:
            self._next(pool)
            return False
        try:
            end = self._now() + int(timeout_s * 1e9)
            for message in _messages(answer):
                if any(event.get("type") == "DELETE" for event in message.get("events", ())):
                    return True
                if self._now() >= end:
                    break
        except (exceptions.HTTPError, ValueError, OSError):
            self._next(pool)
        finally:
            answer.close()
        return False

    # The API requests that locks use.

    def grant_lease(self, ttl_s: int) -> int:
        return int(self.call("lease/grant", {"TTL": str(ttl_s)})["ID"])

    def keep_alive(self, lease: int) -> None:
        """Renew the lease. Failed "not-held" if it is gone."""
        answer = self.call("lease/keepalive", {"ID": str(lease)})
        if int(answer.get("TTL", 0)) <= 0:
            raise Failed("not-held", f"etcd says that lease {lease:x} is gone")

    def lives(self, lease: int) -> bool:
        """Return whether the lease exists; asking does not renew it."""
        return int(self.ask("lease/timetolive", {"ID": str(lease)}).get("TTL", 0)) >= 0

    def revoke(self, lease: int) -> None:
        self.call("lease/revoke", {"ID": str(lease)})

    def created(self, key: str) -> int:
        """Return the create revision of a key, 0 if it does not exist. Linearizable."""
        found = self.ask("kv/range", {"key": text(key)}).get("kvs")
        return int(found[0]["create_revision"]) if found else 0

    def delete_if(self, key: str, create_revision: int) -> bool:
        """Delete the key if it is the one of that revision; return whether it was."""
        return bool(self.call("kv/txn", _deletion(key, create_revision)).get("succeeded"))

    def leave(self, key: str, create_revision: int) -> None:
        """Delete the key if it is the one of that revision. Every server is tried."""
        self.ask("kv/txn", _deletion(key, create_revision))

    def close(self) -> None:
        for pool in self._pools:
            pool.close()


def _deletion(key: str, create_revision: int) -> dict[str, Any]:
    request = {"request_delete_range": {"key": text(key)}}
    return {"compare": [key_is(key, create_revision)], "success": [request]}


def read(host: str, path: str, status: int, data: bytes) -> Any:
    """Return a server's answer, or raise the error that it means."""
    try:
        decoded = msgspec.json.decode(data.split(b"\n", 1)[0])
    except ValueError as error:
        raise Indeterminate("timeout", f"{host}: {path}: no JSON: {data[:80]!r}") from error
    if status == 200 and "error" not in decoded:
        return decoded.get("result", decoded)
    wrong = decoded.get("error") if isinstance(decoded.get("error"), dict) else decoded
    words = str(wrong.get("message") or wrong.get("error") or wrong)
    code = wrong.get("code", wrong.get("grpc_code"))
    # No leader, a new leader, a timeout: the request may still be carried out.
    kind = Failed if code in _REFUSED else Indeterminate
    raise kind("refused" if kind is Failed else "timeout", f"{host}: {path}: {words}")


def _messages(answer: urllib3.BaseHTTPResponse) -> Iterator[dict[str, Any]]:
    rest = b""
    while chunk := answer.read1(65536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield msgspec.json.decode(line).get("result", {})
