"""What keeps other sites out: each request is looked at before it is answered.

A page of another site may send requests here from the browser of the person who runs this. It reads
no answer, but it could remove runs; so what changes anything must come from a page of ours
(`Origin`). And a site may let its own name lead to this machine (DNS rebinding), to read answers as
its own: a name other than localhost is refused, for no such site has an address in the place of a
name (`Host`).

Nothing that is shown loads from elsewhere (Content-Security-Policy). A run's files may be
anybody's: they are shown in a sandbox, in which a script neither asks for anything nor counts as
ours.
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
"""Of a run's files. Their pages have all within them."""
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer` browsers would say of our own pages, too, that their origin is null.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Wraps the application."""

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
    """Why a request is not answered; empty if it is."""
    host = headers.get("host", "")
    if not _is_address(host):
        return "This is not reached by that name: open it by its address, or as localhost.\n"
    if method in ("GET", "HEAD"):
        return ""
    if headers.get("origin") != f"http://{host}":
        return "This was not asked from a page of fencepost serve: nothing was done.\n"
    return ""


def _is_address(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False
