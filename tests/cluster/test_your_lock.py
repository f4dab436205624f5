"""The tutorial of docs/your-lock.md works unchanged, and so do the files that `init` writes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

SERVERS = ["redis-1"]
PAGE = (Path(__file__).parents[2] / "docs" / "your-lock.md").read_text(encoding="utf-8")

# A comment ahead of a block gives its purpose: <!-- file: NAME --> or
# <!-- run: exit N, WORDS -->.
STEP = re.compile(r"<!-- (file|run): (.*) -->\n\n(?:```\w*\n([\s\S]*?)```|    (.*)\n)")


@pytest.mark.long
def test_the_tutorial_has_the_described_results(here, tmp_path):
    steps = STEP.findall(PAGE)
    assert [kind for kind, *_ in steps].count("run") >= 4
    for kind, about, block, command in steps:
        if kind == "file":
            (tmp_path / about).write_text(block)
            continue
        code, _, words = about.removeprefix("exit ").partition(", ")
        got, said = here(*shlex.split(command)[1:])
        assert (got, words in said) == (int(code), True), f"{command}\n{said}"


@pytest.mark.parametrize("options", [(), ("--asyncio",)])
def test_the_lock_that_init_writes_keeps_the_contract_and_is_valid(here, options):
    assert here("init", *options)[0] == 0
    code, said = here("check")
    assert (code, "It keeps the contract." in said) == (0, True), said
    code, said = here("test", "--time", "8s", "--seed", "5")
    assert code == 0, said


@pytest.mark.long
def test_the_lock_that_init_writes_is_detected_if_its_release_deletes_another_s(here, tmp_path):
    assert here("init")[0] == 0
    lock = tmp_path / "mylock.py"
    release = "return self.client.eval(RELEASE, 1, name, self.secrets.pop(name)) == 1"
    assert release in lock.read_text()
    lock.write_text(lock.read_text().replace(release, "self.client.delete(name)"))
    code, said = here("test", "--seed", "5")
    assert (code, "the lock service broke its promise" in said) == (1, True), said
