"""A Kubernetes API server and the controllers of a cluster, in this process."""
