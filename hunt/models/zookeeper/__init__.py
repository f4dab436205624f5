"""A model of ZooKeeper servers: znodes, sessions, watches, and the bytes of their protocol."""
