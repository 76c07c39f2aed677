"""`random.fork_rng`: what is drawn within it is not missed afterwards."""

from __future__ import annotations

import plugrad


def test_the_generator_goes_on_as_before() -> None:
    plugrad.manual_seed(3)
    expected = plugrad.rand(4)
    plugrad.manual_seed(3)
    with plugrad.random.fork_rng():
        plugrad.manual_seed(5)
        plugrad.rand(2)
    assert plugrad.equal(plugrad.rand(4), expected)


def test_it_may_be_switched_off() -> None:
    plugrad.manual_seed(3)
    expected = plugrad.rand(4)
    plugrad.manual_seed(3)
    with plugrad.random.fork_rng(enabled=False):
        plugrad.rand(2)
    assert not plugrad.equal(plugrad.rand(4), expected)
