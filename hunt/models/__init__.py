"""Models of the servers: Redis, etcd, and the resource that asks the lock service."""
