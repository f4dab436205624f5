"""Where the nodes come from: the Docker engine, the nodes' image, and Compose."""
