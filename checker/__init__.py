"""History in, verdict out: needs no cluster, no network, no clock."""
