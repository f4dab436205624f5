"""Results to HTML: one file for a run or a suite, from what the store holds and nothing else."""

if __name__ == "report":
    raise ImportError(
        "report is fencepost.report: import fencepost.report.stored, not report.stored"
    )
