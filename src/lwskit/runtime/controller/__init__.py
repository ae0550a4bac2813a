"""From a change in the cache to a reconcile: sources, handlers, predicates and workers."""
