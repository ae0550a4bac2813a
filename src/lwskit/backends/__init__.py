"""How leaders and workers exist as Kubernetes objects."""
