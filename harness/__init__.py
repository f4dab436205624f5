"""One run from start to end: description, cluster, workers, history, store, command line."""
