"""What the charts and the timeline draw, as plain tables."""
