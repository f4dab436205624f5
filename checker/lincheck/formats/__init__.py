"""Readers: text in, (line, event) out. Each knows one format and no model."""
