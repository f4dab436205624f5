"""Locks under test, one file each; `lock.py` is the interface, `registry.py` lists them."""
