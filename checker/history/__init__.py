"""The history: ops, how they are decoded, and what each resource saw."""
