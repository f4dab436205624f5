"""Waits of the Go SDK: a channel that is closed counts as closed, however late one looks."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.sdk.conftest import SDK

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed"),
]
TEST = """\
package fencepost

import "testing"

func TestAClosedChannelIsClosedHoweverLateOneLooks(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	for n := 0; n < 300000; n++ {
		if !within(closed, 0) {
			t.Fatalf("look %d says that it is open", n)
		}
	}
	if within(make(chan struct{}), 0) {
		t.Fatal("an open channel is not closed")
	}
}
"""


def test_a_wait_without_time_still_sees_a_closed_channel(tmp_path):
    """An elector that had ended looked as if it led on, once in some ten thousand looks."""
    shutil.copy(SDK / "go" / "fencepost.go", tmp_path)
    (tmp_path / "within_test.go").write_text(TEST)
    (tmp_path / "go.mod").write_text("module fencepost\n\ngo 1.18\n")
    done = subprocess.run(["go", "test", "./..."], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
