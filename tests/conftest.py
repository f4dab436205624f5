"""Settings of every test: Hypothesis without deadlines, few objects to collect, each results.json
against its schema."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest
from hypothesis import settings

from tests import schema

pytest_plugins = ("pytester",)

# A loaded machine must not fail a property. The profile inherits from the active one, which
# tests/mutation/run.py and Hypothesis itself (in CI) choose.
settings.register_profile("fencepost", deadline=None)
settings.load_profile("fencepost")


def pytest_collection_finish() -> None:
    """Load pandas, then exclude the objects of the collected tests and modules from garbage
    collections.

    These are about a million, and live until the end. A hunt ends with a full collection, which
    would visit each of them: most of the time of a short one. The C code of pandas relies on the
    classes of datetime, which a hunt in this process replaces. The process that only distributes
    tests collects none, so it does not load pandas.
    """
    with suppress(ImportError):
        import pandas  # noqa: F401
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def every_result_fits_its_schema():
    """Validate each results.json against its schema when it is written."""
    from fencepost.harness.results import results

    write = results.write

    def checked(path, content):
        if path.name == "results.json" and "checkers" in content:
            schema.check("results", content)
        write(path, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "write", checked)
        yield
