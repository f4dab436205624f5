"""Runs `python -m fencepost.node` as fencepost-node in a checkout, for the tests."""

from fencepost.node.command import main

main()
