"""One run from start to end: description, cluster, workers, history, store, command line."""

if __name__ == "harness":
    raise ImportError(
        "harness is fencepost.harness: import fencepost.harness.errors, not harness.errors"
    )
