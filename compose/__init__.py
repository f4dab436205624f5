"""The nodes' image, and the pins of what is installed in it."""

if __name__ == "compose":
    raise ImportError("compose is fencepost.compose: import it by that name")
