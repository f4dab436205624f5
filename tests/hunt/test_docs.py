"""The command in the README finds the story below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencepost.hunt.search.hunt import hunt
from fencepost.hunt.story.story import numbered

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/hunt.md"])
def test_the_story_that_is_shown_is_found(setting, page):
    text = (ROOT / page).read_text()
    shown = re.search(r"fencepost hunt redlock --faults clock,partition --seed (\d+)", text)
    block = re.search(r"((?:    \d\. .*\n(?:       .*\n)*)+)", text)
    assert shown and block
    lines = re.sub(r"\n {7}", " ", block[1]).splitlines()
    _, found = hunt(setting("redlock", "clock,partition"), int(shown[1]), 60, processes=1)
    assert found is not None
    assert [line.strip() for line in lines] == numbered(found.story)
