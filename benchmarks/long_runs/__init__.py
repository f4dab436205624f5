"""Runs as long as a night's, written in minutes: what `make bench-judge` judges.

Clients contend for the locks of one service in virtual time. What they do next is decided by the
generator of real runs, the faults are drawn and written as real runs have them, and latencies are
those of a recorded run of etcd. The history goes to its file op by op, so that memory stays flat.

The service is sound: where no client is paused, all promises hold. A paused client comes back past
its lease and writes all the same, because nothing guards the resource.
"""
