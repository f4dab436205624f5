"""The results folder in a browser: `fencepost serve`."""
