"""HTML pages: one file for a run, a suite, a matrix, a sweep, a nightly run."""
