"""Results to HTML: one file for a run or a suite, from what the store holds and nothing else."""
