"""Many runs: suites, the matrix, sweeps, known defects, hunts from many seeds, nightly runs."""
