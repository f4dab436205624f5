"""Versions of a package on which rows are played: their text, and their packages."""

from __future__ import annotations

import pytest

from fencepost.workloads.scenarios.defects import DEFECTS
from fencepost.workloads.scenarios.register import versions
from fencepost.workloads.scenarios.register.rows import ROWS
from fencepost.workloads.scenarios.register.versions import BadVersions, Wanted

BY_NAME = {row.name: row for row in ROWS}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("redis-py=5..8", ["5.*", "6.*", "7.*", "8.*"]),
        ("redis=5.0.8,6.4.0", ["5.0.8", "6.4.0"]),
        ("redis=7..7, 5.0..5.1,5.0.8,7", ["7.*", "5.0.*", "5.1.*", "5.0.8"]),
        ("@sesamecare-oss/redlock=1,1.4.0-beta.2", ["1.*", "1.4.0-beta.2"]),
    ],
)
def test_a_range_names_the_newest_release_of_each_and_a_list_names_releases(text, found):
    assert [str(one) for one in versions.parse(text)[1]] == found


@pytest.mark.parametrize(
    "text",
    ["redis", "redis=", "=5", "redis=8..5", "redis=5..8.1", "redis=5.1..6.2", "redis=1..99",
     "redis=x", "redis=5;rm", "redis=--pre", "redis=5,,6", "redis=>=5", "redis=" + "9" * 99],
)  # fmt: skip
def test_another_text_is_refused_in_one_sentence(text):
    with pytest.raises(BadVersions, match=r"for example: (redis-py=)?5\.\.8"):
        versions.parse(text)


@pytest.mark.parametrize(
    ("row", "wanted", "installed", "names"),
    [
        ("redis-py-reply-lost", Wanted("5", True), ("redis==5.*",), ("redis",)),
        (
            "portalocker-paused-holder", Wanted("3.2.0", False),
            ("portalocker==3.2.0", "redis"), ("portalocker", "redis"),
        ),
        (
            "moto-if-none-match", Wanted("5.0", True),
            ("moto[server,s3]==5.0.*", "boto3"), ("moto", "boto3"),
        ),
        (
            "redlock-sesamecare-validity", Wanted("1", True),
            ("@sesamecare-oss/redlock@1", "ioredis"), ("@sesamecare-oss/redlock", "ioredis"),
        ),
    ],
)  # fmt: skip
def test_only_the_package_of_the_row_has_a_version(row, wanted, installed, names):
    found = versions.packages(BY_NAME[row], wanted)
    assert (found.wanted, found.names) == (installed, names)


def test_every_script_of_a_registry_names_its_package_first():
    for row in ROWS:
        if row.ecosystem in ("pypi", "npm"):
            found = versions.packages(row, Wanted("1.2.3", False))
            assert versions.plain(found.names[0]) == versions.plain(row.package)
            assert sum("1.2.3" in one for one in found.wanted) == 1


def test_a_software_is_found_by_its_own_name_and_by_that_of_its_package():
    for name in ("redis-py", "redis", "Redis_PY"):
        found = {row.name for row in versions.named(name, ROWS)}
        assert "redis-py-reply-lost" in found and "valkey-py-release-forgets" not in found
    assert not versions.named("nothing", ROWS)


def test_a_defect_without_a_script_is_left_to_nodes():
    rows = [row for row in ROWS if not row.track_record]
    assert [one.name for one in versions.on_nodes("redis-py", DEFECTS, rows)] == [
        "redis-py-reply-lost"
    ]
    assert not versions.on_nodes("redis-py", DEFECTS, ROWS)
