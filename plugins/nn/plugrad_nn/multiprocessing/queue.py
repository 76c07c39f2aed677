"""plugrad.multiprocessing.queue: the queues of multiprocessing, under PyTorch's names.

A queue of multiprocessing pickles by the table that `reductions` adds to, so tensors go through any
of them by their shared memory.
"""

from __future__ import annotations

from multiprocessing.queues import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
