"""The results folder: one folder per run, and how runs are found."""
