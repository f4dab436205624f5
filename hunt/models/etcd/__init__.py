"""A model of an etcd cluster: keys with revisions, leases, transactions, watches."""
