"""Renders Markdown documents as pages of the site.

Links between documents are kept. Links to files that the site does not have, such as source code,
become plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from fencepost import plainfile
from fencepost.harness.errors import BadArguments
from fencepost.report.pages import page

FIRST = ("findings", "claims", "track-record")
"""The documents that the index lists first."""
PICTURES = "pictures"
"""The folder of their pictures, next to them."""
_COMMENT = re.compile(r"<!--.*?-->\n?", re.S)
_NO_WORD = re.compile(r"[^\w\- ]")


def write(docs: Path, to: Path) -> list[tuple[str, str]]:
    """Write a page for each document of a folder; return the name and the title of each."""
    found = {path.stem: _read(path) for path in sorted(docs.glob("*.md"))}
    if found:
        to.mkdir()
    rows = []
    for name in sorted(found, key=lambda name: (name not in FIRST, name)):
        title, body = rendered(found[name], set(found))
        page.write(to / f"{name}.html", "document.html", {"title": title, "body": Markup(body)})
        rows.append((name, title))
    _write_pictures(docs, to, "".join(found.values()))
    return rows


def _write_pictures(docs: Path, to: Path, texts: str) -> None:
    """Copy the pictures that the documents show."""
    for path in sorted((docs / PICTURES).glob("*.png")):
        if f"({PICTURES}/{path.name})" in texts:
            (to / PICTURES).mkdir(exist_ok=True)
            (to / PICTURES / path.name).write_bytes(plainfile.read(path))


def _read(path: Path) -> str:
    try:
        return plainfile.read(path).decode()
    except OSError as error:
        why = error.strerror
    except ValueError as error:
        why = f"it is not UTF-8 ({error})" if isinstance(error, UnicodeError) else str(error)
    raise BadArguments(f"the document {path} cannot be read: {why}; mend it or remove it")


def rendered(text: str, names: set[str]) -> tuple[str, str]:
    """Return the title of a document and its HTML, with links to documents of these names.

    HTML within the document is escaped.
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(_COMMENT.sub("", text))
    title, seen = "", dict[str, int]()
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            words = _text(tokens[place + 1])
            title = title or words
            token.attrSet("id", _anchor(words, seen))
        for piece in token.children or ():
            if piece.type == "link_open":
                _relink(piece, names)
    body: str = markdown.renderer.render(tokens, markdown.options, {})
    # Let a wide table scroll by itself instead of with the page.
    body = body.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>"
    )
    return title, body


def _text(inline: Token) -> str:
    return "".join(piece.content for piece in inline.children or ())


def _anchor(words: str, seen: dict[str, int]) -> str:
    """Return the id of a heading as GitHub makes it, so that links between documents work."""
    base = _NO_WORD.sub("", words.lower()).replace(" ", "-")
    number = seen[base] = seen.get(base, -1) + 1
    return f"{base}-{number}" if number else base


def _relink(link: Token, names: set[str]) -> None:
    href = str(link.attrGet("href") or "")
    parts = urlsplit(href)
    if parts.scheme in ("http", "https", "mailto") or (not parts.path and parts.fragment):
        return
    name = parts.path.removeprefix("../docs/").removesuffix(".md")
    if parts.path.endswith(".md") and name in names:
        link.attrSet("href", f"{name}.html" + (f"#{parts.fragment}" if parts.fragment else ""))
    else:
        del link.attrs["href"]
