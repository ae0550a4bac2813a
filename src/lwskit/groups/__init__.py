"""The domain, pure: which groups there are and what to do next."""
