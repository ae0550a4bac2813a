"""All lives that are explored."""

from __future__ import annotations

from tests.exploration.ds_lives import DS_LIVES
from tests.exploration.hash_lives import HASH_LIVES
from tests.exploration.ordinal_lives import LIVES

ALL_LIVES = (*LIVES, *HASH_LIVES, *DS_LIVES)
"""Those of sets in both modes, and of DisaggregatedSets."""
