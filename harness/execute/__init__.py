"""One run from start to end: timed or scripted, short or long."""
