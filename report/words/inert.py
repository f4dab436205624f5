"""Text of a run as plain text in Markdown."""

from __future__ import annotations

_MARKS = str.maketrans({mark: f"&#{ord(mark)};" for mark in "\\`*[]@"})


def inert(text: str) -> str:
    """Escape text for a line or a table cell: a bar or newline would begin the next cell or row,
    and text must not act as markup."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").translate(_MARKS)
    plain = plain.replace("|", "\\|").replace("://", "&#58;//")
    return " ".join(plain.split())
