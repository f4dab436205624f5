"""Pinned versions are read from the files of three ecosystems."""

from __future__ import annotations

import json
import os

import pytest

from fencepost.workloads.scenarios.register.pins import Pin, Unreadable, concerned, read
from fencepost.workloads.scenarios.register.rows import ROWS

REQUIREMENTS = """\
# a comment
redis[hiredis]==8.1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
SQLAlchemy_Dlock == 0.9.0 ; python_version > "3.9"  # why
tooz>=9
requests
mine @ https://example.org/mine.whl
"""


def read_as(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    return read(tmp_path / name)


def test_requirements_with_hashes_extras_markers_and_ranges(tmp_path):
    assert read_as(tmp_path, "requirements.txt", REQUIREMENTS) == [
        Pin("pypi", "redis", "8.1.0"), Pin("pypi", "sqlalchemy-dlock", "0.9.0"),
        Pin("pypi", "tooz", ""), Pin("pypi", "requests", ""), Pin("pypi", "mine", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["-r other.txt", "-rother.txt", "--requirement=other.txt"])
def test_requirements_of_a_file_that_another_names(tmp_path, word):
    (tmp_path / "other.txt").write_text("-r requirements.txt\nredis==8.1.0\n")
    assert read_as(tmp_path, "requirements.txt", f"{word}  # why\nkazoo==2.11.0\n") == [
        Pin("pypi", "redis", "8.1.0"), Pin("pypi", "kazoo", "2.11.0")
    ]  # fmt: skip
    with pytest.raises(Unreadable, match=r"none\.txt: No such file"):
        read_as(tmp_path, "requirements.txt", "-r none.txt\n")


@pytest.mark.parametrize(
    ("name", "table"),
    [("uv.lock", "package"), ("poetry.lock", "package"), ("pylock.toml", "packages")],
)
def test_locks_of_pythons_installers(tmp_path, name, table):
    content = f"""version = 1
[[{table}]]
name = "SQLAlchemy_Dlock"
version = "0.9.0"
[[{table}]]
name = "mine"
source = {{ editable = "." }}
"""
    assert read_as(tmp_path, name, content) == [
        Pin("pypi", "sqlalchemy-dlock", "0.9.0"), Pin("pypi", "mine", "")
    ]  # fmt: skip


def test_a_package_lock_has_its_packages_at_every_depth(tmp_path):
    packages = {
        "": {"name": "mine", "version": "1.0.0"},
        "node_modules/redlock": {"version": "4.2.0"},
        "node_modules/a/node_modules/@b/c": {"version": "2.0.0"},
    }
    lock = json.dumps({"lockfileVersion": 3, "packages": packages})
    found = read_as(tmp_path, "package-lock.json", lock)
    assert found == [Pin("npm", "redlock", "4.2.0"), Pin("npm", "@b/c", "2.0.0")]


def test_a_go_mod_has_single_and_grouped_requirements(tmp_path):
    content = (
        "module example.org/mine\n\ngo 1.19\n\nrequire go.etcd.io/etcd/v3 v3.4.23\n"
        "require (\n\tgithub.com/x/y v1.2.3 // indirect\n)\n"
    )
    assert read_as(tmp_path, "go.mod", content) == [
        Pin("go", "go.etcd.io/etcd/v3", "3.4.23"), Pin("go", "github.com/x/y", "1.2.3"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("package-lock.json", "{", "has no `packages`"),
        ("package-lock.json", '{"dependencies": {}}', "has no `packages`"),
        ("package-lock.json", '{"packages": {"node_modules/a": 3}}', "has no `packages`"),
        ("package-lock.json", "[" * 3000 + "]" * 3000, "has no `packages`"),
        ("uv.lock", "{", "no list of packages"),
        ("uv.lock", "package = 3", "no list of packages"),
        ("uv.lock", "[[package]]\nname = 3", "no list of packages"),
        ("uv.lock", "x = " + "[" * 3000, "no list of packages"),
        ("yarn.lock", "redis@1:\n  version 1\n", "no list of packages"),
        ("go.mod", "hello", "no line `module ...`"),
        ("requirements.txt", "{'a': 1}", "is not a requirement"),
        ("requirements.txt", "two words", "is not a requirement"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path, name, content, why):
    with pytest.raises(Unreadable, match=why):
        read_as(tmp_path, name, content)


def test_a_file_that_is_missing_or_binary_is_refused(tmp_path):
    with pytest.raises(Unreadable, match="No such file"):
        read(tmp_path / "none.txt")
    (tmp_path / "x.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(Unreadable, match="not text"):
        read(tmp_path / "x.txt")


def test_a_pipe_is_refused_and_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "go.mod")
    with pytest.raises(Unreadable, match="not a regular file"):
        read(tmp_path / "go.mod")


def test_a_long_line_of_dots_is_read_in_linear_time(tmp_path):
    assert read_as(tmp_path, "go.mod", "module x\n" + "." * 500_000) == []


def test_a_package_that_is_named_often_is_read_once(tmp_path):
    assert read_as(tmp_path, "requirements.txt", "redis==8.1.0\n" * 3) == [
        Pin("pypi", "redis", "8.1.0")
    ]


@pytest.mark.parametrize("version", ["\u0663.1", "1" + "0" * 6000])
def test_a_version_that_cannot_be_compared_is_concerned_by_every_row(version):
    pins = [Pin("pypi", "redis", one) for one in ("", version)]
    without, odd = ([row for pin, row in concerned(pins, ROWS) if pin == one] for one in pins)
    assert odd == without != []


def test_only_rows_of_the_ecosystem_package_and_version_concern_a_project():
    def names(*pins):
        return {row.name for _, row in concerned(pins, ROWS)}

    assert names(Pin("pypi", "redis", "4.5.0")) == set()
    assert names(Pin("pypi", "redis", "5.0.8")) == {
        "redis-py-cancelled-acquire", "redis-py-reacquire-zero", "redis-py-release-forgets",
    }  # fmt: skip
    assert names(Pin("npm", "redis", "8.1.0")) == set()
    assert "tooz-postgresql-keys" in names(Pin("pypi", "tooz", ""))
