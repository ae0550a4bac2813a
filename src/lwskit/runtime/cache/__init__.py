"""A local copy of what the API server stores, kept current by watches: watcher, store, views, informers, cache."""
