"""The registry of suites: built-in ones, a line each, and those of installed packages."""

from __future__ import annotations

from fencepost.registry import Registry
from fencepost.workloads.scenarios import (
    etcd,
    libraries,
    postgres,
    rates,
    redis,
    redlock,
    zookeeper,
)
from fencepost.workloads.scenarios.suite import Suite

SUITES = Registry(
    "fencepost.suites",
    Suite,
    (
        redlock.SUITE,
        redis.SUITE,
        zookeeper.SUITE,
        etcd.SUITE,
        postgres.SUITE,
        libraries.SUITE,
        rates.SUITE,
    ),
)
