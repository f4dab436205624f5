"""End a mutant's process when one test takes far longer than it did without the mutant.

mutmut gives a mutant the time of all its tests together; this limit detects an endless loop sooner.
It counts processor time, so that a mutant's fate does not depend on other load of the machine.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterable
from typing import Any

import pytest
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd

TIMES, SECONDS = 20, 1  # a test may take this multiple of its normal time, and this much more
TIMEOUT = 36  # the exit code by which mutmut recognizes a timeout


def install() -> None:
    def run_tests(self: PytestRunner, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        plugins = [] if mutant_name is None else [_Limit()]
        with change_cwd("mutants"):
            arguments = self._pytest_args_regular_run(tests)
            return int(self.execute_pytest(arguments, plugins=plugins))

    PytestRunner.run_tests = run_tests


class _Limit:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        usual = state().duration_by_test.get(item.nodeid, 0)
        signal.signal(signal.SIGPROF, lambda *_: os._exit(TIMEOUT))
        signal.setitimer(signal.ITIMER_PROF, SECONDS + TIMES * usual)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
