"""The command line: one file per noun, and the output to the terminal."""
