"""Renders stored results as HTML: one self-contained file for a run or a suite."""

if __name__ == "report":
    raise ImportError(
        "report is fencepost.report: import fencepost.report.stored, not report.stored"
    )
