"""How hypothesis draws here: the same each time, on a machine as slow as it may be."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def drawn(max_examples: int, *suppressed: HealthCheck) -> settings:
    """Settings for a test on so many examples, which are the same in every run.

    Args:
        suppressed: health checks to do without, beside that of the time to draw.
    """
    return settings(
        max_examples=max_examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, *suppressed],
    )
