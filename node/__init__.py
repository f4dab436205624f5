"""Programs of a node, behind one command: `fencepost-node VERB`. Standard library only."""

if __name__ == "node":
    raise ImportError("node is fencepost.node: import fencepost.node.kind, not node.kind")
