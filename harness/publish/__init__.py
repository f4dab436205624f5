"""Publishes the results folder as a static site: `fencepost site`."""
