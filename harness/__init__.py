"""Carries out runs: specification, cluster, clients, history, verdict, results, command line."""

if __name__ == "harness":
    raise ImportError(
        "harness is fencepost.harness: import fencepost.harness.errors, not harness.errors"
    )
