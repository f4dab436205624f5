"""The results folder as a static site."""
