"""Count mutants, and compare the survivors with the list of those that do not matter.

docs/mutants.md lists survivors in tables of four columns: file, function, before, after. They
identify a mutant by the text of the lines that it changes, not by a number. If that text occurs
in the function twice, it is listed twice.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

FOLDER = Path("mutants")
LISTED = Path("docs/mutants.md")
NEEDED = 90  # percent


class Survivor(NamedTuple):
    file: str
    function: str
    before: str
    after: str


class Count(NamedTuple):
    """Results of the mutants of one file. `endless`: those killed because they did not end."""

    killed: int
    endless: int
    tried: int
    all: int

    def __str__(self) -> str:
        share = f"{100 * self.killed / self.tried:.1f} %" if self.tried else "-"
        notes = [f"{self.endless} by time"] * (self.endless > 0)
        notes += [f"{self.all - self.tried} not tried yet"] * (self.all > self.tried)
        told = f"{share:>7} {self.killed:>5} of {self.tried:<5}"
        return f"{told} ({', '.join(notes)})" if notes else told


def killed(code: int) -> bool:
    """Return whether it was detected; a mutant that ends the process, or never ends, was."""
    return status_by_exit_code[code] in ("killed", "timeout", "segfault")


def main(files: list[str]) -> int:
    """Print the score of these files, or of all; return the exit code of the command."""
    counts: list[Count] = []
    survivors: list[Survivor] = []
    diffs: list[str] = []
    for meta in sorted(FOLDER.glob("checker/**/*.meta")):
        file = str(meta.relative_to(FOLDER).with_suffix(""))
        if (files and file not in files) or not Path(file).is_file():
            continue
        codes = json.loads(meta.read_text())["exit_code_by_key"]
        if not codes:
            continue
        counts.append(counted(list(codes.values())))
        print(f"{counts[-1]}  {file}")
        for name, code in codes.items():
            if code is not None and not killed(code):
                diff = get_diff_for_mutant(name, path=file)
                diffs.append(f"# {name}: {status_by_exit_code[code]}\n{diff}\n")
                survivors.append(survivor(file, name, diff))
    total = Count(*map(sum, zip(*counts, strict=True))) if counts else Count(0, 0, 0, 0)
    print(f"{total}  killed in all")
    (FOLDER / "survivors.diff").write_text("\n".join(diffs))
    print(f"{len(survivors)} survived; their diffs: {FOLDER / 'survivors.diff'}")
    unlisted = Counter(survivors) - Counter(listed(LISTED.read_text()))
    if unlisted:
        print(f"{unlisted.total()} that survived are not in {LISTED}:")
        print("\n".join(row(one) for one in sorted(unlisted.elements())))
    enough = total.killed * 100 >= NEEDED * total.tried
    return 0 if enough and not unlisted and total.tried == total.all else 1


def counted(codes: list[int | None]) -> Count:
    tried = [code for code in codes if code is not None]
    endless = sum(status_by_exit_code[code] == "timeout" for code in tried)
    return Count(sum(map(killed, tried)), endless, len(tried), len(codes))


def survivor(file: str, name: str, diff: str) -> Survivor:
    """Return the mutant that mutmut calls `name`, by its changed lines."""
    mangled = name.rpartition(".")[2].partition("__mutmut_")[0]
    function = mangled.removeprefix("x_") if "ǁ" not in mangled else mangled[2:].replace("ǁ", ".")
    lines = diff.splitlines()[2:]
    before, after = (
        " ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    return Survivor(file, function, before, after)


def row(one: Survivor) -> str:
    """Return the survivor as a row of a table in docs/mutants.md."""
    before, after = (text.replace("|", r"\|") for text in (one.before, one.after))
    return f"| {one.file} | `{one.function}` | `{before}` | `{after}` |"


def listed(text: str) -> list[Survivor]:
    """Return the survivors in the tables of docs/mutants.md."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[0].startswith("checker/"):
            file, *code = (cell.replace(r"\|", "|") for cell in cells)
            found.append(Survivor(file, *(text[1:-1] for text in code)))
    return found
