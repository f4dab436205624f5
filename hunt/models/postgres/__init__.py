"""Models PostgreSQL 15: the parts of its protocol and of SQL that locks use."""
