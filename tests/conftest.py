"""What holds in every test: a results.json that is written is what its schema says."""

from __future__ import annotations

import pytest

from tests import schema

pytest_plugins = ("pytester",)


@pytest.fixture(autouse=True, scope="session")
def every_result_fits_its_schema():
    from fencepost.harness.results import results

    write = results.write

    def checked(path, content):
        if path.name == "results.json" and "checkers" in content:
            schema.check("results", content)
        write(path, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "write", checked)
        yield
