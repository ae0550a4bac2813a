"""Requests to a Kubernetes API server: built and read by pure functions, sent by a transport."""
