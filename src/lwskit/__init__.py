"""LeaderWorkerSet and DisaggregatedSet for Kubernetes, in Python."""
