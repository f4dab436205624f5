"""`python -m fencepost.node`: fencepost-node in a checkout, for the tests."""

from fencepost.node.command import main

main()
