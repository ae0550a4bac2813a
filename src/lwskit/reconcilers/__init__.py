"""Shells around the decisions: observe, decide, execute."""
