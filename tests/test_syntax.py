"""Source texts are parsed in several threads at the same time."""

from __future__ import annotations

import ast
import gc
import threading
import time
from pathlib import Path

import pytest

from fencepost import syntax

SOURCE = Path(syntax.__file__).parent.joinpath("commandline.py").read_bytes()


@pytest.fixture
def collects_often():
    """Other threads run whenever garbage is collected, so in the middle of a tree as well."""

    def lets_others_run(phase, info):
        time.sleep(0)

    before = gc.get_threshold()
    gc.set_threshold(50)
    gc.callbacks.append(lets_others_run)
    yield
    gc.callbacks.remove(lets_others_run)
    gc.set_threshold(*before)


def test_trees_that_are_made_at_the_same_time_are_those_of_one_thread(collects_often):
    wanted, found, errors = ast.dump(ast.parse(SOURCE)), [], []

    def parse():
        try:
            found.extend(syntax.tree(SOURCE) for _ in range(10))
        except SystemError as error:
            errors.append(error)

    threads = [threading.Thread(target=parse) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(found) == 40
    assert {ast.dump(one) for one in found} == {wanted}


def test_the_file_is_named_in_an_error():
    with pytest.raises(SyntaxError) as raised:
        syntax.tree(b"def", "mine.py")
    assert raised.value.filename == "mine.py"
