"""`make mutants`: mutation testing of checker/, by mutmut with this project's changes.

A checker's product is its verdict, so its tests are measured by the wrong checkers that they let
pass. mutmut changes one expression at a time and runs the tests that reach it, the fastest first,
until one fails; score.py counts. Five things differ from mutmut as it comes:

1. Its trampolines ask the environment at each call which mutant is on, which makes the search many
   times slower. Here a forked worker puts the mutant's code into the function, once, and a profiler
   sees which functions a test reaches (switch.py).
2. Words are left alone: a sentence in evidence decides nothing (mutators.py).
3. Properties are mutated too.
4. The test that contains an endless loop detects it (limit.py).
5. Hypothesis draws the same examples in each run and does not shrink, so that a mutant's fate is
   the same in each run.

Results are kept in mutants/, so an interrupted run resumes. Mutants that survived are tried again
where checker/ or its tests have changed. `make clean` deletes all.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import limit
import mutators
import score
import switch
from hypothesis import HealthCheck, Phase, settings
from mutmut import __main__ as mutmut
from mutmut import stats
from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.utils.file_utils import walk_mutatable_files
from score import killed

MEMORY = 4 << 30  # bytes of address space: a mutant that loops may allocate without end
FOLDER = Path("mutants")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants ARGS=...", description="Mutate checker/.")
    parser.add_argument("files", nargs="*", help="only these, as checker/facts/holds.py")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants tried at a time")
    parser.add_argument(
        "--tests",
        metavar="PATHS",
        default="",
        help="run only these tests, with spaces between; what survives them is tried again later",
    )
    parser.add_argument("--score", action="store_true", help="only count what is known")
    arguments = parser.parse_args()
    for file in arguments.files:
        if not Path(file).is_file():
            parser.error(f"{file} is not a file; name one like checker/facts/holds.py")
    tests = [str(path) for word in arguments.tests.split() for path in sorted(Path().glob(word))]
    if arguments.tests and not tests:
        parser.error(f"no file is called {arguments.tests}; name some like tests/checker/test_*.py")
    if not arguments.score:
        _forget_what_is_stale(tests)
        if tests:
            config().pytest_add_cli_args_test_selection = tests
        _link()
        _prepare()
        if arguments.files:
            _restrict(set(arguments.files))
        mutmut._run((), arguments.jobs)
    return score.main(arguments.files)


def _prepare() -> None:
    settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutants")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # The score must not depend on recorded histories that only some machines have.
    os.environ["FENCEPOST_HISTORIES"] = os.devnull
    if not sys.stdout.isatty():  # its spinner would fill the log
        mutmut.print_status = stats.print_status = lambda *_, **__: None
    mutators.install()
    switch.install()
    limit.install()


def _link() -> None:
    """Lay out the package fencepost next to the mutants: their checker/, and all else from here."""
    package = FOLDER / "src" / "fencepost"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree("src/fencepost", package, symlinks=True)
    for link in package.iterdir():
        if link.is_symlink() and link.name != "checker":
            link.unlink()
            link.symlink_to(Path(link.name).resolve())


def _restrict(files: set[str]) -> None:
    """Try the mutants of these files only, and only those whose fate is not known."""
    collect = mutmut.collect_source_file_mutation_data

    def collect_some(*, mutant_names):
        mutants, by_path = collect(mutant_names=mutant_names)
        return [mutant for mutant in mutants if str(mutant[0].path) in files], by_path

    mutmut.collect_source_file_mutation_data = collect_some


def _forget_what_is_stale(selected: list[str]) -> None:
    """Delete all results if the rules changed, and survivors if checker/ or its tests did, or which
    of them are selected."""
    here = Path(__file__).parent
    rules = [here / "mutators.py", here / "switch.py", Path("requirements.lock")]
    if _changed("rules", rules):
        shutil.rmtree(FOLDER, ignore_errors=True)
        _changed("rules", rules)
    # Tests that were deleted or renamed must not stay in the copy.
    shutil.rmtree(FOLDER / "tests", ignore_errors=True)
    tests = [*Path("tests").glob("*.py"), *Path("tests/checker").rglob("*.py")]
    changed = _changed("sources", [*Path("checker").rglob("*.py"), *tests], selected)
    if changed:
        (FOLDER / "mutmut-stats.json").unlink(missing_ok=True)
    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        try:
            data.load()
        except ValueError:  # the run was interrupted while it wrote the file
            Path(data.meta_path).unlink()
            (FOLDER / path).unlink(missing_ok=True)
            continue
        codes = data.exit_code_by_key
        survived = [name for name, code in codes.items() if code is not None and not killed(code)]
        if changed and survived:
            codes.update(dict.fromkeys(survived))
            data.save()


def _changed(what: str, paths: list[Path], words: Iterable[str] = ()) -> bool:
    """Return whether these files or words differ from those of the last run."""
    told = b"".join(path.read_bytes() for path in sorted(paths)) + "\0".join(words).encode()
    digest = hashlib.sha256(told).hexdigest()
    mark = FOLDER / f"{what}.sha256"
    if mark.is_file() and mark.read_text() == digest:
        return False
    FOLDER.mkdir(exist_ok=True)
    mark.write_text(digest)
    return True


if __name__ == "__main__":
    sys.exit(main())
