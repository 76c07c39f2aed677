"""plugrad.multiprocessing.pool: the pool of multiprocessing, under PyTorch's name.

Its queues pickle by the table that `reductions` adds to.
"""

from __future__ import annotations

from multiprocessing.pool import Pool

__all__ = ["Pool"]
