"""pytest's plugin: tests of locks among other tests, on one cluster a session.

    def test_my_lock_is_safe_while_clients_pause(fencepost):
        result = fencepost.run(MyLock, servers="redis:1", faults="pause:client", time="20s")
        result.assert_valid("service")

The cluster starts with the first run of the session and stops with the session. Under xdist each
worker has its own session, and so its own cluster. The rest of fencepost is imported on first use,
because every pytest of an environment loads this file.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fencepost.harness.api.hunted import Hunted
    from fencepost.harness.api.result import Result
    from fencepost.harness.api.session import Session

_MARKER = "fencepost"
_RESULTS = pytest.StashKey["list[Result | Hunted]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fencepost", "tests of distributed locks")
    group.addoption(
        "--fencepost-seed",
        metavar="NUMBER",
        help="seed of every run, overriding the tests' own: repeats a failure",
    )
    group.addoption(
        "--fencepost-time",
        metavar="TIME",
        help="duration of every run, for example 5s, overriding the tests' own",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fencepost(**settings): default settings for the runs of this test, for example "
        "time='10s'; every test that uses the fixture `fencepost` has this marker",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        uses = _MARKER in getattr(item, "fixturenames", ())
        if uses and item.get_closest_marker(_MARKER) is None:
            item.add_marker(_MARKER)


class Fencepost:
    """The fixture `fencepost`: tests locks for one test."""

    def __init__(self, item: pytest.Item, session: Session) -> None:
        self._item = item
        self._session = session

    def run(self, lock: str | type, **settings: Any) -> Result:
        """Test a lock on the session's cluster. Takes the arguments of `fencepost.run` except those
        about the location of nodes, and raises the same errors."""
        result = self._session.run(lock, **self._settings(settings))
        self._item.stash.setdefault(_RESULTS, []).append(result)
        self._say(verdict=result.verdict, seed=result.seed, report=result.report)
        return result

    def hunt(self, lock: str | type, **settings: Any) -> Hunted:
        """Search simulated runs of a lock for a schedule that breaks it, without a cluster:

            fencepost.hunt("redlock", faults="clock,partition", budget="20s", seed=7).assert_valid()

        It takes what `fencepost hunt` takes; with `confirm=True` the counterexample is replayed on
        the session's cluster. Markers do not apply to it; `--fencepost-seed` does, and
        `--fencepost-time` is its budget.
        """
        for name, word in (("seed", "seed"), ("time", "budget")):
            asked = self._asked(name)
            settings |= {word: asked} if asked is not None else {}
        found = self._session.hunt(lock, **settings)
        self._item.stash.setdefault(_RESULTS, []).append(found)
        report = found.result.report if found.result else "none"
        self._say(verdict=found.valid, seed=found.seed, report=report)
        return found

    def _say(self, **properties: object) -> None:
        for name, value in properties.items():
            self._item.user_properties.append((f"fencepost.{name}", str(value)))

    def _asked(self, name: str) -> str | None:
        """Return the settings that the command line gives for every run."""
        asked: str | None = self._item.config.getoption(f"fencepost_{name}")
        return asked

    def _settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """Merge settings: the command line overrides the test, which overrides its markers."""
        found: dict[str, Any] = {}
        for marker in reversed(list(self._item.iter_markers(_MARKER))):
            found |= marker.kwargs
        found |= given
        for name in ("seed", "time"):
            if (asked := self._asked(name)) is not None:
                found[name] = asked
        return found


@pytest.fixture(scope="session")
def fencepost_session() -> Iterator[Session]:
    """Return the cluster of this pytest session, or of this worker of xdist."""
    from fencepost.harness.api.session import Session

    with Session(say=print) as session:
        yield session


@pytest.fixture
def fencepost(request: pytest.FixtureRequest, fencepost_session: Session) -> Fencepost:
    """Return the tester of locks: `result = fencepost.run(MyLock, servers="redis:1",
    faults="pause:client")`."""
    return Fencepost(request.node, fencepost_session)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the results of its runs to a failed test's report; pytest-html links each run's
    report."""
    report = yield
    found = item.stash.get(_RESULTS, [])
    if report.when == "call" and found:
        if report.failed:
            words = "\n\n".join(result.explain() for result in found)
            report.sections.append(("fencepost", words))
        if item.config.getoption("htmlpath", None):  # of pytest-html
            _link(report, [one for one in map(_run_of, found) if one is not None])
    return report


def _run_of(one: Result | Hunted) -> Result | None:
    """Return the run that has a report: for a hunt, that of its counterexample."""
    from fencepost.harness.api.result import Result

    return one if isinstance(one, Result) else one.result


def _link(report: pytest.TestReport, found: list[Result]) -> None:
    from pytest_html import extras

    links = [
        extras.url(result.report.as_uri(), name=f"{result.results['test']} {result.folder.name}")
        for result in found
    ]
    report.extras = [*getattr(report, "extras", []), *links]  # type: ignore[attr-defined]
