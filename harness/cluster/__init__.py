"""Provides the nodes of a run: Docker engine, image, containers, external servers, hosts."""
