"""The pytest plugin in a test suite, on a cluster in memory."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

pytestmark = pytest.mark.slow

QUICK = "time=1, concurrency=2, options={'retries': 0}"


@pytest.fixture
def suite(pytester, machine, short, monkeypatch):
    """Run a test file's content with pytest, in this process."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(content, *options):
        pytester.makepyfile(content)
        return pytester.runpytest_inprocess("-p", "fencepost.pytest_plugin", *options)

    return run


def test_tests_share_a_cluster_that_is_removed_with_the_session(suite, machine):
    found = suite(
        f"""
        def test_one(fencepost):
            fencepost.run("redis", {QUICK}).assert_valid()

        def test_two(fencepost):
            assert fencepost.run("redis", seed=7, {QUICK}).valid
        """
    )
    found.assert_outcomes(passed=2)
    cluster = machine["fencepost"]
    assert (cluster.ups, cluster.downs, cluster.nodes) == (1, 1, [])


@pytest.mark.parametrize("ends", ["KeyboardInterrupt", "SystemExit(3)"])
def test_the_cluster_is_removed_however_the_session_ends(suite, machine, ends):
    with suppress(KeyboardInterrupt):
        suite(
            f"""
            def test_one(fencepost):
                fencepost.run("redis", {QUICK})
                raise {ends}
            """
        )
    assert machine["fencepost"].ups == 1
    assert machine["fencepost"].nodes == []


def test_a_failing_test_shows_the_verdict_and_the_report_s_path(suite, machine):
    machine["fencepost"].service.broken = True
    found = suite(
        f"""
        def test_by_assertion(fencepost):
            fencepost.run("redis", seed=7, {QUICK}).assert_valid("service")

        def test_by_valid(fencepost):
            result = fencepost.run("redis", seed=8, {QUICK})
            assert result.valid
        """
    )
    found.assert_outcomes(failed=2)
    said = found.stdout.str()
    assert "AssertionError: redis is INVALID on service." in said
    assert re.search(r"where False = <Invalid: the lock service broke its promise", said)
    for seed in (7, 8):
        assert re.search(rf"seed {seed}, report: /.*/report\.html", said)


def test_the_command_line_s_seed_and_time_are_those_of_every_run(suite):
    found = suite(
        f"""
        def test_one(fencepost):
            result = fencepost.run("redis", {QUICK.replace("time=1", "time=600")}, seed=7)
            assert result.seed == 11 and result.results["stats"]["duration_s"] < 300
        """,
        "--fencepost-seed=11",
        "--fencepost-time=1s",
    )
    found.assert_outcomes(passed=1)


def test_a_marker_has_the_settings_of_a_test_s_runs_and_every_test_of_a_lock_has_it(suite):
    content = f"""
        import pytest

        pytestmark = pytest.mark.fencepost({QUICK})

        @pytest.mark.fencepost(seed=5)
        def test_one(fencepost):
            assert fencepost.run("redis").seed == 5
            assert fencepost.run("redis", seed=6).seed == 6
        """
    suite(content).assert_outcomes(passed=1)
    other = """
        def test_of_a_lock(fencepost):
            pass

        def test_of_something_else():
            pass
        """
    suite(other, "-m", "fencepost", "--strict-markers").assert_outcomes(passed=1, deselected=1)


def test_junit_has_each_run_s_verdict_seed_and_report(suite, pytester):
    suite(
        f"""
        def test_one(fencepost):
            fencepost.run("redis", seed=7, {QUICK})
        """,
        "--junitxml=junit.xml",
    )
    written = (pytester.path / "junit.xml").read_text()
    assert '<property name="fencepost.seed" value="7"' in written
    assert '<property name="fencepost.verdict" value="True"' in written
    assert re.search(r'<property name="fencepost.report" value="/.*/report.html"', written)


def test_pytest_html_links_each_run_s_report(suite, pytester):
    pytest.importorskip("pytest_html")
    suite(
        f"""
        def test_one(fencepost):
            fencepost.run("redis", seed=7, {QUICK})
        """,
        "-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin", "--html=out.html",
    )  # fmt: skip
    assert re.search(r"file:///[^&]*/report\.html", (pytester.path / "out.html").read_text())


def test_bad_settings_fail_the_test_with_a_sentence_and_start_nothing(suite, machine):
    found = suite('def test_one(fencepost):\n    fencepost.run("redlok")\n')
    found.assert_outcomes(failed=1)
    assert "there is no lock 'redlok'" in found.stdout.str()
    assert machine["fencepost"].ups == 0
