"""The public Python API: run, Session, Result, hunt."""
