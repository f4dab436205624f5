"""User locks: resolves them from a command line, ships, stores and repeats them."""
