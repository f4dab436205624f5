"""Writes runs as long as a nightly run's in minutes, for `make bench-judge`.

Clients contend for the locks of one service in virtual time. The generator of real runs decides
their ops, the faults are drawn and written as in real runs, and latencies are those of a recorded
run of etcd. The history goes to its file op by op, so that memory stays flat.

The service is sound: if no client is paused, all promises hold. A paused client resumes past its
lease and writes all the same, because nothing guards the resource.
"""
