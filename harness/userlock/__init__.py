"""Locks of one's own: made from a command line or a file, shipped, stored, and run again."""
