"""What the installed MPI can do."""

from __future__ import annotations

import pytest

from plugrad_distributed.launching.starter import find_starter


@pytest.fixture
def mpich() -> None:
    """Skips the test unless the MPI library is MPICH, or starts in the same way."""
    found = find_starter()
    if found.kind != "hydra":
        pytest.skip(
            f"processes meet by PMI-1, which MPICH speaks; {found.path} is of kind {found.kind!r}"
        )
