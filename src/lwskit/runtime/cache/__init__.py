"""List and watch, kept in local stores that reconcilers read."""
