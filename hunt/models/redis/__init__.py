"""A model of a Redis server: commands, scripts, expiry, persistence, replication."""
