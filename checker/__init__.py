"""Judges a history; needs no cluster, network or clock."""

if __name__ == "checker":
    raise ImportError(
        "checker is fencepost.checker: import fencepost.checker.verdict, not checker.verdict"
    )
