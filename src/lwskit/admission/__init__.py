"""The webhooks of LeaderWorkerSet and of its pods."""
