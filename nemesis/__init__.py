"""Fault injection: one file per family, with its receipt and its healing; schedules."""

if __name__ == "nemesis":
    raise ImportError(
        "nemesis is fencepost.nemesis: import fencepost.nemesis.pause, not nemesis.pause"
    )
