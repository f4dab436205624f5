"""Connections to servers for locks and resources."""
