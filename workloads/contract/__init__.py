"""The interfaces: lock, resource, guard, store, and their bundles."""
