"""The description of a run: its content, its sources and its validation."""
