"""Requests to an S3-like service: one object at a time, signed if there are keys.

The signature is version 4 of AWS ("Authenticating Requests: Using the Authorization Header" in the
documentation of Amazon S3). The bucket is the first part of the path, which every such service
takes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import quote, urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Keys:
    """The keys of an account, and the region that they are used for."""

    id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)
    region: str = "us-east-1"


def keys_of(environment: Mapping[str, str] = os.environ) -> Keys | None:
    """Return the keys that AWS' own tools would find in the environment; None without any."""
    found = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if not (found[0] and found[1]):
        return None
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return Keys(found[0], found[1], environment.get("AWS_SESSION_TOKEN", ""), region or "us-east-1")


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    etag: str
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class S3Link:
    """Requests to objects below `url`: SCHEME://HOST[:PORT]/BUCKET[/PREFIX]. Each request has a
    connection of its own, so that threads may share a link.

    Raises ValueError for any other URL.
    """

    def __init__(self, url: str, keys: Keys | None = None, timeout_s: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} is not an http or https URL")
        if not parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(f"{url} does not end with /BUCKET or /BUCKET/PREFIX")
        self._secure = parts.scheme == "https"
        self._host, self._name = parts.netloc.rpartition("@")[2], parts.hostname
        self._port = parts.port
        self._folder = parts.path.strip("/")
        self._keys, self._timeout_s = keys, timeout_s

    def ask(self, method: str, key: str, body: bytes = b"", **conditions: str) -> Answer:
        """Send a request. `conditions`: headers, with _ for -.

        Raises:
            OSError: there is no answer, so whether it was carried out is unknown.
        """
        path = quote(f"/{self._folder}/{key}")
        headers = {name.replace("_", "-").lower(): value for name, value in conditions.items()}
        headers["host"] = self._host
        if self._keys is not None:
            headers |= signature(self._keys, method, path, headers, body, time.gmtime())
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._name, self._port, timeout=self._timeout_s)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers.get("ETag", ""), answer.read())
        except HTTPException as error:
            raise OSError(f"no valid answer: {error!r}") from error
        finally:
            connection.close()


def signature(
    keys: Keys,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    now: time.struct_time,
) -> dict[str, str]:
    """Return the headers that sign a request with these headers (names in lower case)."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", now)
    added = {"x-amz-content-sha256": hashlib.sha256(body).hexdigest(), "x-amz-date": moment}
    if keys.token:
        added["x-amz-security-token"] = keys.token
    signed = dict(sorted({**headers, **added}.items()))
    names = ";".join(signed)
    lines = "".join(f"{name}:{value.strip()}\n" for name, value in signed.items())
    request = "\n".join((method, path, "", lines, names, added["x-amz-content-sha256"]))
    scope = f"{moment[:8]}/{keys.region}/s3/aws4_request"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    proof = _mac(key, "\n".join((_ALGORITHM, moment, scope, hashed))).hex()
    credential = f"Credential={keys.id}/{scope},SignedHeaders={names},Signature={proof}"
    return {**added, "authorization": f"{_ALGORITHM} {credential}"}


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
