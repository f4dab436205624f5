"""What runs on a node, behind one command: `fencepost-node VERB`. Python's own library alone."""

if __name__ == "node":
    raise ImportError("node is fencepost.node: import fencepost.node.kind, not node.kind")
