"""Backend: the name of a carrier, as programs for PyTorch write it."""

from __future__ import annotations

__all__ = ["Backend"]


class Backend(str):
    """A name in lower case: ``Backend("MPI") == Backend.MPI == "mpi"``.

    >>> import plugrad.distributed as dist
    >>> dist.Backend("MPI") == dist.Backend.MPI
    True
    >>> dist.Backend(3)
    Traceback (most recent call last):
        ...
    ValueError: Backend constructor parameter must be string-ish, got 3
    """

    __slots__ = ()

    UNDEFINED = "undefined"
    ALONE = "alone"
    FAKE = "fake"
    GLOO = "gloo"
    MPI = "mpi"
    NCCL = "nccl"

    def __new__(cls, name: str) -> Backend:
        """The name.

        Raises:
            ValueError: it is not a string.
        """
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got {name!r}")
        return str.__new__(cls, name.lower())
