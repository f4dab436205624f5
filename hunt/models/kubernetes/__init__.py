"""A model of the Kubernetes API server: the objects by which leaders are elected."""
