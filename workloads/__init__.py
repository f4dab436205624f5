"""The clients' side: locks, the resource that they protect, generators, scenarios."""

if __name__ == "workloads":
    raise ImportError(
        "workloads is fencepost.workloads: import fencepost.workloads.client, not workloads.client"
    )
