"""What the documentation links to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(page.relative_to(ROOT) for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def anchors(page: Path) -> set[str]:
    """The addresses of a page's headings, as hosting services make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_to_the_repository_leads_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = ROOT / page.parent / file if file else ROOT / page
        assert found.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(found), f"{page}: {target}"
