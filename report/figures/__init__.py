"""Data for the charts and the timeline, as plain tables."""
