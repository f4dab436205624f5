"""The results folder: one folder a run, and where the runs are found."""
