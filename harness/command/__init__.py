"""The command line, one file a noun, and what a person sees of it."""
