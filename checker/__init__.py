"""History in, verdict out: needs no cluster, no network, no clock."""

if __name__ == "checker":
    raise ImportError(
        "checker is fencepost.checker: import fencepost.checker.verdict, not checker.verdict"
    )
