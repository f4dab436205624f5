"""One issue for nightly runs whose outcomes changed: the first opens it, later ones update it.

A label and a mark in its text identify it, so that it may be renamed. The service is GitHub's REST
API, version 2022-11-28, or a compatible one. The variables that Actions sets name it:
GITHUB_API_URL, GITHUB_REPOSITORY, and a GITHUB_TOKEN that may write issues.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from fencepost.harness.errors import BadArguments, Crashed
from fencepost.report.pages.nightly import counted, markdown

LABEL = "nightly"
MARK = "<!-- fencepost: nightly -->"
TITLE = "Nightly: an outcome changed"
_TIMEOUT_S = 30.0
# GitHub takes 65,536 characters.
_MOST = 60_000
_NEEDED = ("GITHUB_API_URL", "GITHUB_REPOSITORY", "GITHUB_TOKEN")


class _Staying(HTTPRedirectHandler):
    """Follow no redirect: the token is for this host alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def report(night: Mapping[str, Any], environment: Mapping[str, str], link: str = "") -> str:
    """Open or update the issue if an outcome changed; return a sentence about the action.

    Raises:
        BadArguments: a variable is missing, or names no API or repository.
        Crashed: the service did not answer, or refused.
    """
    if not counted(night)["changed"]:
        return "No outcome changed: no issue is needed."
    if missing := [name for name in _NEEDED if not environment.get(name)]:
        raise BadArguments(f"{', '.join(missing)} must be set, as in a job of GitHub Actions")
    place, repository, token = (environment[name] for name in _NEEDED)
    _must_be_sane(place, repository)
    api = f"{place.rstrip('/')}/repos/{repository}/issues"
    body = "\n".join(filter(None, [MARK, markdown(night), link]))
    if len(body) > _MOST:
        body = f"{body[:_MOST]}\n\n(cut here)"
    found = _ask("GET", f"{api}?state=open&labels={LABEL}&per_page=100", token)
    for one in found if isinstance(found, list) else ():
        if MARK in str(one.get("body") or "") and "pull_request" not in one:
            number = int(one["number"])
            _ask("PATCH", f"{api}/{number}", token, {"body": body})
            return f"Issue {number} was updated."
    made = _ask("POST", api, token, {"title": TITLE, "body": body, "labels": [LABEL]})
    return f"Issue {made['number']} was opened."


def _must_be_sane(place: str, repository: str) -> None:
    parts = urlsplit(place)
    near = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and near)):
        raise BadArguments(f"GITHUB_API_URL {place!r} is not an https address")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise BadArguments(f"GITHUB_REPOSITORY {repository!r} is not OWNER/NAME")


def _ask(method: str, url: str, token: str, content: Any = None) -> Any:
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "fencepost",
    }
    data = None if content is None else json.dumps(content).encode()
    if data is not None:
        headers["Content-Type"] = "application/json"
    request = Request(url, data=data, headers=headers, method=method)
    try:
        with build_opener(_Staying).open(request, timeout=_TIMEOUT_S) as answer:
            return json.loads(answer.read())
    except HTTPError as error:
        said = error.read(300).decode(errors="replace").strip()
        raise Crashed(
            f"{method} {url} was refused: {error.code} {said}. Use a token that may write issues"
        ) from error
    except (URLError, OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise Crashed(f"{method} {url} failed: {why}") from error
