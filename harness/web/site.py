"""Builds the Starlette application of `fencepost serve`: the results folder as pages."""

from __future__ import annotations

import os
from asyncio import timeout
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from fencepost import plainfile
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.results import results, run_index
from fencepost.harness.results.batch_index import KINDS
from fencepost.harness.web import guard, pages, place
from fencepost.harness.web.archive import zipped
from fencepost.harness.web.growing import growth
from fencepost.harness.web.patience import PATIENCE_S, Download, Patient
from fencepost.harness.web.place import NotHere
from fencepost.harness.web.shelf import COLUMNS, VERDICTS, Asked, Shelf, both_ways
from fencepost.report.words.settings import again, settings

_SHOWN = 200
"""Number of runs on the list without `all=1`."""
_SCRIPT = "text/javascript"
_PIECE = 1 << 18
_MOST_BODY = 1 << 20
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".zip": "application/zip",
    ".gz": "application/gzip",
    ".parquet": "application/octet-stream",
}
"""Media types of files by suffix; all others are plain text."""


def site() -> ASGIApp:
    """Return the guarded application. Each request reads the results folder again."""
    shelf, patient = Shelf(), Patient()
    page = patient.endpoint

    async def style(request: Request) -> Response:
        return Response(pages.STYLE, media_type="text/css")

    async def script(request: Request) -> Response:
        return Response(pages.SCRIPT, media_type=_SCRIPT)

    async def removed(request: Request) -> Response:
        names = parse_qs((await _body(request)).decode(errors="replace")).get("run", [])
        await patient.do(request, lambda: run_index.remove(_chosen(names)))
        return RedirectResponse("/", 303)

    def sorry(code: int) -> Callable[[Request, Exception], Response]:
        return lambda request, error: _sorry(code, str(error))

    def other(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = "There is no such page." if error.status_code == 404 else error.detail
        return _sorry(error.status_code, words)

    app = Starlette(
        routes=[
            Route("/", page(partial(_list, shelf))),
            Route("/style.css", style),
            Route("/script.js", script),
            Route("/run/{name:path}", page(_run)),
            Route("/files/{name:path}", patient.download(_file)),
            Route("/compare", page(_compare)),
            Route("/zip", patient.download(_zip)),
            Route("/remove", page(_ask), methods=["GET"]),
            Route("/remove", removed, methods=["POST"]),
        ],
        exception_handlers={
            NotHere: sorry(404), BadArguments: sorry(400), Crashed: sorry(500),
            HTTPException: other,
        },
    )  # fmt: skip
    # The guard wraps everything, so that answers to internal errors have its headers too.
    return guard.Guard(app)


def _page(template: str, **values: Any) -> HTMLResponse:
    return HTMLResponse(pages.render(template, values))


def _sorry(code: int, words: str) -> HTMLResponse:
    text = words if words.endswith((".", "?")) else f"{words}."
    return HTMLResponse(pages.render("sorry.html", {"words": text[:1].upper() + text[1:]}), code)


def _list(shelf: Shelf, request: Request) -> Response:
    asked = Asked.of(request.query_params)
    every = shelf.rows()
    found = shelf.asked(asked)
    shown = found if request.query_params.get("all") else found[:_SHOWN]
    return _page(
        "list.html",
        root=str(results.root()),
        asked=asked,
        rows=shown,
        found=len(found),
        every=len(every),
        bytes=sum(row["bytes"] for row in found),
        kinds=[kind for kind in KINDS if any(row["kind"] == kind for row in every)],
        verdicts=VERDICTS,
        locks=sorted({lock for row in every for lock in row["locks"] if lock}),
        faults=sorted({fault for row in every for fault in row["faults"]}),
        columns=COLUMNS,
        both_ways=both_ways,
    )


def _run(request: Request) -> Response:
    found = _stored(request.path_params["name"])
    files = [(name, stat.st_size) for name, stat in place.files(found.folder)]
    grown = growth(found.folder) if found.live and found.came is None else None
    # Other folders are not looked at: their file system may hang.
    same = [name for folder in run_index.candidates(found.folder.parent.name)
            if (name := run_index.name_of(folder)) < found.name]  # fmt: skip
    return _page(
        "run.html",
        run=found,
        grown=grown,
        settings=[(label, run_index.words(value)) for label, value in settings(found.test)],
        checkers=found.results.get("checkers") or {},
        notes=found.results.get("run_notes") or [],
        again="" if found.came else again(found.test, found.folder) or "",
        files=files,
        report="report.html" if any(name == "report.html" for name, _ in files) else "",
        before=same[0] if same else "",
    )


def _file(request: Request) -> Download:
    path, run = place.file(request.path_params["name"])
    kind = _TYPES.get(path.suffix, "text/plain; charset=utf-8")
    headers = {"Content-Security-Policy": guard.STORED}
    try:
        file = plainfile.opened(path)
    except OSError as error:
        raise NotHere(f"{path.name} cannot be opened: {error.strerror}") from error
    if not run_index.is_live(run):
        # A file that grows while it is sent has no length to announce.
        headers["Content-Length"] = str(os.fstat(file.fileno()).st_size)
    return Download(_pieces(file), kind, headers)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while data := file.read(_PIECE):
            yield data


def _compare(request: Request) -> Response:
    names = request.query_params.getlist("run")
    if len(names) != 2:
        raise BadArguments(f"select two runs to compare, not {len(names)}")
    one, other = map(_stored, names)
    run_index.must_compare(one, other)
    rows = [(label, run_index.words(mine), run_index.words(its))
            for label, mine, its in run_index.beside(one, other)]  # fmt: skip
    return _page(
        "compare.html", one=one, other=other, rows=rows, alike=run_index.alike(one, other),
        differ=sum(mine != its for _, mine, its in rows),
    )  # fmt: skip


def _zip(request: Request) -> Download:
    found = _chosen(request.query_params.getlist("run"))
    names = [run_index.name_of(folder) for folder in found]
    name = names[0].replace("/", "-") if len(names) == 1 else f"fencepost-{len(names)}-runs"
    attached = f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}.zip"
    headers = {"Content-Disposition": attached}
    return Download(zipped(place.with_runs(found)), _TYPES[".zip"], headers)


def _ask(request: Request) -> Response:
    """Ask for confirmation before these runs are deleted."""
    found = [run_index.entry_of(one, run_index.name_of(one))
             for one in _chosen(request.query_params.getlist("run"))]  # fmt: skip
    return _page("remove.html", runs=found, live=[one.name for one in found if one.live])


async def _body(request: Request) -> bytes:
    body = b""
    try:
        async with timeout(PATIENCE_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MOST_BODY:
                    raise HTTPException(413, "The list of runs is too long.")
    except TimeoutError as error:
        raise HTTPException(408, "The list of runs did not arrive in time.") from error
    return body


def _stored(name: str) -> run_index.Stored:
    folder = place.run(name)
    return run_index.entry_of(folder, run_index.name_of(folder))


def _chosen(names: Sequence[str]) -> list[Path]:
    if not names:
        raise BadArguments("no run is selected; select at least one")
    return list(dict.fromkeys(map(place.run, names)))
