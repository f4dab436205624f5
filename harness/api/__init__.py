"""What `import fencepost` gives: run, Session, Result, hunt."""
