"""Keeps other sites out: checks each request before it is answered.

A page of another site can send requests here from the user's browser (CSRF). It cannot read the
answers, but it could delete runs. So a request that changes anything must come from a page of this
server (`Origin`). A site can also point its own name at this machine to read answers (DNS
rebinding). So a host name other than localhost is refused (`Host`); addresses are allowed, because
an address cannot be rebound.

Pages load nothing from other hosts (Content-Security-Policy). The files of a run are untrusted:
they are shown in a sandbox, where scripts can make no requests and do not have this origin.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OURS = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
STORED = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts allow-downloads allow-modals"
)
"""The policy for files of a run. Their pages are self-contained."""
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer`, browsers would send a null origin for this server's own pages too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Wraps the application: refuses requests of other sites and adds the security headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers[name] = value
                headers.setdefault("Content-Security-Policy", OURS)
            await send(message)

        why = refused(scope["method"], Headers(scope=scope))
        app = PlainTextResponse(why, 403) if why else self._app
        await app(scope, receive, sent)


def refused(method: str, headers: Headers) -> str:
    """Return why a request is refused; empty if it is allowed."""
    host = headers.get("host", "")
    if not _is_address(host):
        return "Host name refused: open this server by its address, or as localhost.\n"
    if method in ("GET", "HEAD"):
        return ""
    if headers.get("origin") != f"http://{host}":
        return "Request refused: it did not come from a page of this server. Nothing was changed.\n"
    return ""


def _is_address(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False
