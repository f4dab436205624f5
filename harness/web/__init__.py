"""Serves the results folder to a browser: `fencepost serve`."""
