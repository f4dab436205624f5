"""The number of processors: those that this process may use, not those of the machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fencepost import processors


def test_a_process_that_is_bound_to_one_processor_counts_one():
    program = (
        "import os\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from fencepost import processors\n"
        "print(processors.count())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


@pytest.mark.parametrize(("machine", "counted"), [(6, 6), (None, 1)])
def test_where_no_set_of_processors_can_be_read_the_machine_s_number_counts(
    monkeypatch, machine, counted
):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: machine)
    assert processors.count() == counted
