"""Expressions in CEL, as Kubernetes extends the language: parsing, types, evaluation. Pure; knows nothing of CRDs."""
