"""The electors of docs/your-elector.md lead, are not accused, and are found without timeouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.harness.hunting import hunts
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.sim.schedule import Schedule
from tests import snippets
from tests.hunt.sound import assert_not_accused

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "your-elector.md"
FILES = {one.file: one.text for one in snippets.of(PAGE) if one.file.endswith(".py")}
ELECTORS = {"MyElector": "myelector.py", "MyAsyncElector": "async_elector.py"}


def hunt(folder, elector, spoilt=("", ""), stops="exit", **more):
    file = folder / ELECTORS[elector]
    assert spoilt[0] in FILES[file.name]
    file.write_text(FILES[file.name].replace(*spoilt))
    settings = {"seed": 1, "stops": stops}
    return hunts.described(f"{file}:{elector}", {}, settings, servers="kubernetes", **more)


@pytest.mark.parametrize("elector", ELECTORS)
def test_an_elector_of_the_page_leads_and_hands_over(tmp_path, elector):
    asked = hunt(tmp_path, elector)
    ran = Run(asked.setting, Schedule(), table(asked.setting)).execute()
    leads = [row for row in ran.rows if row[2:4] == ("ok", "acquire")]
    resigns = [row for row in ran.rows if row[2:4] == ("ok", "release")]
    assert {row[6] for row in leads} == {"client-1", "client-2"}
    assert len(resigns) == len(leads) and ran.came_back


@pytest.mark.parametrize("elector", ELECTORS)
def test_an_elector_of_the_page_is_not_accused(tmp_path, elector):
    assert_not_accused(hunt(tmp_path, elector).setting, 100)


def test_without_the_timeouts_of_the_page_two_leaders_work_at_once(tmp_path):
    endless = (", timeout=self.ttl / 8", "")
    hunted = hunt(tmp_path, "MyElector", endless, "callback", budget="600s")
    _, found = hunted.carry_out(processes=1)
    assert found is not None and "leadership" in found.broken
