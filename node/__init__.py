"""What runs on a node, behind one command: `fencepost-node VERB`. Python's own library alone."""
