"""Calls that work by elements, joined on the tape of a compiled step: which ones, and which not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.plugins import Link, Operand, Variant
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.kernels.test_variants import installed
from tests.core.plugins.kernels.test_variants_in_compiled_steps import run

pytestmark = pytest.mark.usefixtures("cpu", "project")


class Joiner:
    """Joins by calling one kernel after the other, and records the requests."""

    def __init__(self) -> None:
        self.asked: list[list[Link]] = []
        self.ran = 0

    def join(self, links: list[Link]) -> Callable[..., Any] | None:
        self.asked.append(links)

        def function(*inputs: Any, out: Any = None) -> Any:
            self.ran += 1
            results: list[Any] = []
            for link in links:
                given = [
                    (results if value.of_link else inputs)[value.number]
                    if isinstance(value, Operand)
                    else value
                    for value in link.arguments
                ]
                results.append(link.kernel(*given))
            return results[-1] if out is None else np.copyto(out, results[-1]) or out

        return function

    def variants(self, join: Any = None) -> list[Variant]:
        kernels = {
            "exp": np.exp,
            "tanh": np.tanh,
            "mul.Tensor": np.multiply,
            "mul.Scalar": lambda a, b, out=None: np.multiply(a, np.float32(b), out=out),
            "add.Tensor": np.add,
        }
        return [
            Variant(name, kernel, name="joined", takes_out=True, joins=join or self.join)
            for name, kernel in kernels.items()
        ]


@pytest.fixture
def joiner() -> Joiner:
    return Joiner()


def names(links: list[Link]) -> list[tuple[Any, ...]]:
    return [link.arguments for link in links]


def test_a_tree_of_calls_is_one_call(manager: PluginManager, joiner: Joiner) -> None:
    x = plugrad.arange(6.0).reshape(2, 3)
    with installed(manager, *joiner.variants()):
        found, tape = run(lambda x: (x.exp() * x).tanh() * 2.5, x)
        assert found.equal((x.exp() * x).tanh() * 2.5)
    assert (tape.joined, tape.direct) == (4, 1)
    (links,) = joiner.asked
    assert names(links) == [
        (Operand(False, 0),),
        (Operand(True, 0), Operand(False, 0)),
        (Operand(True, 1),),
        (Operand(True, 2), 2.5),
    ]
    assert joiner.ran >= 3


def test_what_is_read_elsewhere_is_not_joined(manager: PluginManager, joiner: Joiner) -> None:
    def step(x: Any) -> Any:
        e = x.exp()
        return e.tanh() * x, e.sum()

    with installed(manager, *joiner.variants()):
        (found, total), tape = run(step, plugrad.ones(4))
    assert tape.joined == 2  # tanh and mul
    assert total == plugrad.ones(4).exp().sum()
    assert found.equal(plugrad.ones(4).exp().tanh())


def test_what_is_returned_is_not_joined(manager: PluginManager, joiner: Joiner) -> None:
    def step(x: Any) -> Any:
        e = x.exp()
        return e, e.tanh()

    with installed(manager, *joiner.variants()):
        _, tape = run(step, plugrad.ones(4))
    assert tape.joined == 0
    assert joiner.asked == []


def test_shapes_that_broadcast_are_not_joined(manager: PluginManager, joiner: Joiner) -> None:
    row = plugrad.arange(3.0)

    def step(x: Any) -> Any:
        return (x.exp() * row).tanh()

    with installed(manager, *joiner.variants()):
        found, tape = run(step, plugrad.ones(2, 3))
    assert tape.joined == 0
    assert found.equal(step(plugrad.ones(2, 3)))


def test_layouts_that_are_not_contiguous_are_not_joined(
    manager: PluginManager, joiner: Joiner
) -> None:
    x = plugrad.arange(6.0).reshape(2, 3).T
    with installed(manager, *joiner.variants()):
        _, tape = run(lambda x: (x.exp() * x).tanh(), x)
    assert tape.joined == 0


def test_a_write_between_keeps_calls_apart(manager: PluginManager, joiner: Joiner) -> None:
    state = plugrad.ones(4)

    def step(x: Any) -> Any:
        e = state.exp()
        state.zero_()
        return e * x

    compiled: Any = plugrad.compile(step)
    with installed(manager, *joiner.variants()):
        for _ in range(3):
            state.fill_(1)
            assert compiled(plugrad.ones(4)).equal(plugrad.ones(4).exp())
        assert compiled.cache_info().hits, compiled.explain()
    assert joiner.asked == []


def test_a_joiner_may_decline(manager: PluginManager, joiner: Joiner) -> None:
    def never(links: list[Link]) -> None:
        joiner.asked.append(links)

    with installed(manager, *joiner.variants(never)):
        found, tape = run(lambda x: x.exp().tanh(), plugrad.ones(4))
    assert len(joiner.asked) == 1
    assert tape.joined == 0
    assert found.equal(plugrad.ones(4).exp().tanh())


def test_other_bits_are_not_taken(manager: PluginManager, joiner: Joiner) -> None:
    def wrong(links: list[Link]) -> Any:
        return lambda *inputs, out=None: np.zeros_like(inputs[0])

    with installed(manager, *joiner.variants(wrong)):
        found, tape = run(lambda x: x.exp().tanh(), plugrad.ones(4))
    assert tape.joined == 0
    assert found.equal(plugrad.ones(4).exp().tanh())


def test_a_call_that_is_declined_is_made_one_by_one(manager: PluginManager, joiner: Joiner) -> None:
    declining: list[bool] = []

    def join(links: list[Link]) -> Any:
        function = joiner.join(links)
        assert function is not None

        def some(*inputs: Any, out: Any = None) -> Any:
            return NotImplemented if declining else function(*inputs, out=out)

        return some

    compiled: Any = plugrad.compile(lambda x: x.exp().tanh() * x)
    x = plugrad.arange(4.0)
    with installed(manager, *joiner.variants(join)):
        for _ in range(3):
            compiled(x)
        declining.append(True)
        assert compiled(x).equal(x.exp().tanh() * x)


def test_joins_must_be_callable() -> None:
    with pytest.raises(TypeError, match="joins must be callable, got int"):
        Variant("exp", np.exp, name="x", joins=3)  # type: ignore[arg-type]
