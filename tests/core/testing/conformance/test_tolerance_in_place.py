"""Where a method computes in another dtype than it writes, that one's precision counts."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.testing.conformance.test_in_place import slack_of


@pytest.mark.parametrize(
    ("computed", "written", "slack"),
    [
        (None, plugrad.float64, 1.0),
        (plugrad.float64, plugrad.float64, 1.0),
        (plugrad.float32, plugrad.float64, 400.0),
        (plugrad.float64, plugrad.float32, 1.0),
        (plugrad.int64, plugrad.int64, 1.0),
    ],
)
def test_tolerance_is_that_of_the_lower_precision(
    computed: plugrad.dtype | None, written: plugrad.dtype, slack: float
) -> None:
    kwargs = {} if computed is None else {"dtype": computed}
    assert slack_of(kwargs, written) == pytest.approx(slack)
