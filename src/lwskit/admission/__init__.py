"""The webhooks of LeaderWorkerSet, of its pods and of DisaggregatedSet."""
