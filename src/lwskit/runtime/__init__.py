"""A controller library on asyncio that knows nothing of LeaderWorkerSet."""
