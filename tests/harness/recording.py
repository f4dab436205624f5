"""Lines handed to a recorder as a worker does it, without a client."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.harness.run.event import decode
from fencepost.harness.run.recorder import Recorder


def record(recorder: Recorder, lines: Sequence[bytes]) -> None:
    recorder.append(lines, [decode(line) for line in lines])
