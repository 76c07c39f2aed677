"""Several processes that compute together, each with its own devices."""

from __future__ import annotations

from typing import Any

import jax


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    **options: Any,
) -> None:
    """Join the other processes, on this host or on others: `jax.distributed.initialize`.

    Afterwards `jax.devices()` are the devices of all processes, and can form a mesh; `jax:0`,
    `jax:1`, ... are this process's own. Each process runs the same program. Call it before anything
    is computed with JAX.

    Args:
        coordinator_address: host and port of the process with number 0, ``"10.0.0.1:1234"``. JAX
            finds it and the next two itself on SLURM, Open MPI, Kubernetes and Cloud TPU.
        num_processes: how many there are.
        process_id: the number of this one.
        **options: other arguments of `jax.distributed.initialize`.

    Raises:
        RuntimeError: JAX has begun to compute, or was initialized before.

    >>> import plugrad_jax
    >>> plugrad_jax.initialize("localhost:1234", num_processes=2, process_id=0)  # doctest: +SKIP
    """
    given: Any = jax
    given.distributed.initialize(coordinator_address, num_processes, process_id, **options)
