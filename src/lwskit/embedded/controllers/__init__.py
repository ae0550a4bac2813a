"""The controllers of an embedded cluster, written on lwskit.runtime."""
