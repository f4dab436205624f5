"""The register: defects of software that people use, each shown by a script without fencepost."""
