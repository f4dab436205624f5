"""What `reproduce` writes for a row is one file that needs nothing of the project."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fencepost.workloads.scenarios.register import standalone
from fencepost.workloads.scenarios.register.row import SCRIPTS
from fencepost.workloads.scenarios.register.rows import ROWS

NAMES = [row.script.name for row in ROWS]
TOP = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@pytest.fixture
def made(tmp_path):
    """Return a function that writes a script and its frame, and returns the file made of them."""

    def make(script: str, **frame: str) -> str:
        (tmp_path / "frame").mkdir()
        for name, content in {"script": script, **frame}.items():
            place = tmp_path if name == "script" else tmp_path / "frame"
            (place / f"{name}.py").write_text(textwrap.dedent(content).lstrip())
        return standalone.text(tmp_path / "script.py")

    return make


def loaded_at_once(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top needs when it runs: no function's body runs."""
    found, stack = set(), [statement]
    while stack:
        one = stack.pop()
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            found.add(one.id)
        inner = list(ast.iter_child_nodes(one))
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            body = one.body if isinstance(one.body, list) else [one.body]
            inner = [other for other in inner if other not in body]
        stack += inner
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_written_file_imports_nothing_of_the_project_and_names_no_place_in_it(name):
    written = standalone.text(SCRIPTS / name)
    tree = ast.parse(written)
    imported = {
        (one.module if isinstance(one, ast.ImportFrom) else alias.name).partition(".")[0]
        for one in ast.walk(tree)
        if isinstance(one, ast.Import | ast.ImportFrom)
        for alias in one.names
    }
    assert not imported & {"frame", "fencepost", "workloads"}
    for word in ("fencepost", "workloads", "register/", str(Path(__file__).parents[3])):
        assert word not in written


@pytest.mark.parametrize("name", NAMES)
def test_a_written_file_defines_each_name_before_it_is_needed_and_defines_nothing_in_vain(name):
    tree = ast.parse(standalone.text(SCRIPTS / name))
    used = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
    known = {*dir(builtins), "__file__", "__name__"}
    for statement in tree.body:
        bound = {one.id for one in ast.walk(statement)
                 if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}  # fmt: skip
        arguments = {one.arg for one in ast.walk(statement) if isinstance(one, ast.arg)}
        assert loaded_at_once(statement) <= known | bound | arguments, ast.unparse(statement)
        known |= bound
        if isinstance(statement, TOP):
            known.add(statement.name)
            assert statement.name in used, statement.name
        if isinstance(statement, ast.Import | ast.ImportFrom):
            known |= {(one.asname or one.name).partition(".")[0] for one in statement.names}


def test_every_part_of_the_frame_is_in_a_written_file():
    written = {
        one.name if isinstance(one, TOP) else ast.unparse(one)
        for name in NAMES
        for one in ast.parse(standalone.text(SCRIPTS / name)).body
    }
    for module in (SCRIPTS / "frame").glob("*.py"):
        for one in ast.parse(module.read_text(encoding="utf-8")).body[1:]:
            if not isinstance(one, ast.Import | ast.ImportFrom):
                part = one.name if isinstance(one, TOP) else ast.unparse(one)
                assert part in written, f"{module.name}: {part[:60]}"


def test_written_files_are_as_ruff_formats_and_sorts_them(tmp_path):
    for name in NAMES:
        (tmp_path / name).write_text(standalone.text(SCRIPTS / name))
    ruff = [sys.executable, "-m", "ruff"]
    options = ["--isolated", "--line-length", "100", "--no-cache"]
    rules = ["--select", "E,F,I,B", "--ignore", "E501", "--target-version", "py311"]
    for command in (["check", *rules], ["format", "--diff"]):
        done = subprocess.run(
            [*ruff, *command, *options, tmp_path], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_script_uses_comes_below_it_and_nothing_else(made):
    written = made(
        '''
        """It is stuck.

        Needs: nothing.
        """

        import time

        import redis

        from frame.server import LIMIT_S, serve

        NAME = "job"


        def show():
            serve(redis, time, LIMIT_S)


        if __name__ == "__main__":
            show()
        ''',
        server='''
        """A server."""

        import os
        import socket
        import sys
        from contextlib import ExitStack, contextmanager

        from frame.ports import port
        from frame.unused import anything

        LIMIT_S = 10
        PLACE = "/tmp"
        if os.name == "nt":
            PLACE = "C:"


        # It serves.
        @contextmanager
        def serve(*_):
            yield port() + helper()


        def unused():
            return sys, anything, ExitStack


        def helper():
            return PLACE
        ''',
        ports='''
        """Ports."""

        import socket


        def port():
            return socket.socket()
        ''',
    )
    assert (
        written
        == textwrap.dedent(
            '''
        """It is stuck.

        Needs: nothing.
        """

        import os
        import socket
        import time
        from contextlib import contextmanager

        import redis

        NAME = "job"


        def show():
            serve(redis, time, LIMIT_S)


        # A server.

        LIMIT_S = 10
        PLACE = "/tmp"
        if os.name == "nt":
            PLACE = "C:"


        # It serves.
        @contextmanager
        def serve(*_):
            yield port() + helper()


        def helper():
            return PLACE


        # Ports.


        def port():
            return socket.socket()


        if __name__ == "__main__":
            show()
        '''
        ).lstrip()
    )


def test_a_script_that_uses_no_frame_is_written_as_it_is(made):
    script = '"""Alone."""\n\nimport os\n\nprint(os)\n'
    assert made(script) == script


@pytest.mark.parametrize(
    "frame",
    ['"""P."""\n\n\ndef take():\n    return NAME\n\n\nNAME = 2\n',
     '"""P."""\n\nimport socket as NAME\n\n\ndef take():\n    return NAME\n'],
)  # fmt: skip
def test_one_name_for_two_things_is_refused(made, frame):
    script = '"""S."""\n\nfrom frame.parts import take\n\nNAME = 1\n\nprint(take(), NAME)\n'
    with pytest.raises(ValueError, match="one name for two things: NAME"):
        made(script, parts=frame)


def test_a_name_that_the_frame_does_not_define_is_refused(made):
    with pytest.raises(ValueError, match=r"frame\.parts has no lost"):
        made('"""S."""\n\nfrom frame.parts import lost\n\nlost()\n', parts='"""P."""\n\nX = 1\n')
