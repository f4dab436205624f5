"""The boundaries: lock, resource, guard, store, and their bundles."""
