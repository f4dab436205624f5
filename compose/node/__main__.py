"""`python -m fencepost.compose.node`: fencepost-node in a checkout, for the tests."""

from fencepost.compose.node.command import main

main()
