"""SVG badges for a README: a run's verdict, and the open defects of a library."""

from __future__ import annotations

from html import escape

from fencepost.checker.verdict import Valid

GREEN, RED = "#2f7d2f", "#c03a2b"
_COLOUR: dict[Valid, str] = {True: GREEN, False: RED, "unknown": "#9a7b1c"}
_WORD: dict[Valid, str] = {True: "valid", False: "invalid", "unknown": "unknown"}
# Width of a letter at this font size, roughly.
_WIDTH, _SPACE = 7, 12


def svg(name: str, valid: Valid) -> str:
    """Return the badge as SVG: the test's name and its verdict."""
    return drawn(name, _WORD[valid], _COLOUR[valid])


def drawn(name: str, words: str, colour: str) -> str:
    """Return a badge as SVG, with the words on this colour."""
    left, right = (len(text) * _WIDTH + _SPACE for text in (name, words))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" '
        f'viewBox="0 0 {left + right} 20" role="img" aria-label="{escape(name)}: {escape(words)}">'
        f'<rect width="{left}" height="20" fill="#555"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2:g}" y="14">{escape(name)}</text>'
        f'<text x="{left + right / 2:g}" y="14">{escape(words)}</text></g></svg>\n'
    )
