"""What a run is: its description, where it comes from, and whether it makes sense."""
