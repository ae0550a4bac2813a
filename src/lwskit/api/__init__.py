"""What a user writes and what it means: names, types, defaults, validation and CRDs of LeaderWorkerSet."""
