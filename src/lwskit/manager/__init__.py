"""The program an installation runs."""
