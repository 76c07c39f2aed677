"""Propagation rules: which collectives they save, rules of third parties, what has no rule, and
random numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad.distributed import tensor as dtensor
from plugrad.distributed.device_mesh import init_device_mesh
from plugrad.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from plugrad.distributed.tensor.experimental import (
    implicit_replication,
    local_map,
    register_sharding,
)
from plugrad.nn import functional as F
from plugrad.testing import assert_close

R, P = Replicate(), Partial()


def _line(function: Callable[[Any], Any], ranks: int = 2) -> list[Any]:
    return dist.run_ranks(lambda: function(init_device_mesh("cpu", (ranks,))), ranks)


def _matrix(rows: int = 4, columns: int = 6) -> Any:
    return plugrad.arange(float(rows * columns)).reshape(rows, columns)


PLACED: dict[str, tuple[Callable[..., Any], list[Any], Any]] = {
    "elementwise": (lambda x: x.exp(), [Shard(0)], Shard(0)),
    "broadcast": (lambda x, y: x + y[0], [Shard(0), R], Shard(0)),
    "number": (lambda x: x * 2, [P], P),
    "sum_of_sums": (lambda x, y: x + y, [P, P], P),
    "reduction": (lambda x: x.sum(0), [Shard(0)], P),
    "other_dimension": (lambda x: x.sum(1), [Shard(0)], Shard(0)),
    "maximum": (lambda x: x.amax(0), [Shard(0)], Partial("max")),
    "mean": (lambda x: x.mean(0), [Shard(0)], Partial("avg")),
    "transposed": (lambda x: x.t(), [Shard(0)], Shard(1)),
    "merged": (lambda x: x.view(-1), [Shard(0)], Shard(0)),
    "columns": (lambda x, y: x @ y.t(), [R, Shard(0)], Shard(1)),
    "inner": (lambda x, y: x @ y.t(), [Shard(1), Shard(1)], P),
    "softmax": (lambda x: x.softmax(1), [Shard(1)], Shard(1)),
    "layer_norm": (lambda x: F.layer_norm(x, (6,)), [Shard(0)], Shard(0)),
    "slices": (lambda x: x[:, 1:3], [Shard(0)], Shard(0)),
}


@pytest.mark.parametrize("name", PLACED)
def test_results_lie_where_no_collective_is_needed(name: str) -> None:
    function, given, expected = PLACED[name]

    def run(mesh: Any) -> None:
        inputs = [
            DTensor.from_local(_matrix(), mesh, [P])
            if one == P
            else distribute_tensor(_matrix(), mesh, [one])
            for one in given
        ]
        assert function(*inputs).placements == (expected,)

    _line(run)


@pytest.mark.parametrize(("placement", "expected"), [(Shard(0), P), (Shard(1), Shard(1)), (R, R)])
def test_an_embedding_whose_table_is_cut(placement: Any, expected: Any) -> None:
    table, tokens = _matrix(5, 4), plugrad.tensor([[0, 4, 2], [1, 1, 3]])

    def run(mesh: Any) -> None:
        weight = distribute_tensor(table, mesh, [placement]).requires_grad_()
        found = F.embedding(distribute_tensor(tokens, mesh, [R]), weight)
        assert_close(found.full_tensor().detach(), table[tokens])
        (found * found).sum().backward()
        plain = table.clone().requires_grad_()
        (plain[tokens] ** 2).sum().backward()
        assert_close(weight.grad.full_tensor(), plain.grad)

    _line(run, 4)


def test_writing_to_a_part_that_lies_on_another_rank_shows_in_the_whole() -> None:
    expected = _matrix()
    expected[1:3] *= 10
    expected[0, 0] = -1

    def run(mesh: Any) -> None:
        for placement in (R, Shard(0), Shard(1)):
            x = distribute_tensor(_matrix(), mesh, [placement])
            x[1:3] *= 10
            x[0, 0] = -1
            assert_close(x.full_tensor(), expected)

    _line(run)


def test_a_sum_times_itself_is_the_square_of_the_sum() -> None:
    def run(mesh: Any) -> None:
        x = DTensor.from_local(_matrix(), mesh, [P])
        assert_close((x * x).full_tensor(), (2 * _matrix()) ** 2)
        assert_close((x / x)[1].full_tensor(), plugrad.ones(6))
        x *= x
        assert_close(x.full_tensor(), (2 * _matrix()) ** 2)

    _line(run)


def test_what_is_infinite_on_another_rank_does_not_spread() -> None:
    def run(mesh: Any) -> None:
        rows = plugrad.tensor([[plugrad.inf], [1.0], [plugrad.nan], [2.0]])
        table = distribute_tensor(rows, mesh, [Shard(0)])
        index = distribute_tensor(plugrad.tensor([1, 3]), mesh, [R])
        expected = plugrad.tensor([[1.0], [2.0]])
        assert_close(F.embedding(index, table).full_tensor(), expected)
        assert_close(table.gather(0, index.unsqueeze(1)).full_tensor(), expected)

    _line(run)


@pytest.mark.parametrize("name", ["erfinv", "digamma", "i0", "square", "atan2", "erf"])
def test_elementwise_operators_of_all_kinds_run_on_parts(name: str) -> None:
    x = _matrix().to(plugrad.float64) / 30 + 0.1
    others = [x + 1] if name == "atan2" else []

    def run(mesh: Any) -> None:
        parts = [distribute_tensor(one, mesh, [Shard(0)]) for one in (x, *others)]
        expected = getattr(plugrad, name)(x, *others)
        found = getattr(plugrad, name)(*parts)
        assert found.placements == (Shard(0),)
        assert_close(found.full_tensor(), expected)
        getattr(parts[0], f"{name}_")(*parts[1:])
        assert parts[0].placements == (Shard(0),)
        assert_close(parts[0].full_tensor(), expected)
        summands = DTensor.from_local(x / 2, mesh, [P])
        getattr(summands, f"{name}_")(*parts[1:])
        assert_close(summands.full_tensor(), expected)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _line(run)


def test_batches_of_matrices_and_of_signals_are_cut() -> None:
    generator = plugrad.Generator().manual_seed(1)
    x = plugrad.rand(4, 3, 3, generator=generator, dtype=plugrad.float64) + 2 * plugrad.eye(3)
    calls: list[Callable[[Any], Any]] = [
        lambda m: plugrad.linalg.cholesky_ex(m @ m.mT)[0],
        lambda m: plugrad.linalg.eigh(m @ m.mT)[0],
        lambda m: plugrad.linalg.svd(m)[1],
        lambda m: plugrad.linalg.qr(m)[1],
        lambda m: plugrad.linalg.det(m),
        lambda m: plugrad.linalg.solve(m, m[:, :, :1]),
        lambda m: plugrad.fft.rfft(m),
    ]

    def run(mesh: Any) -> None:
        d = distribute_tensor(x, mesh, [Shard(0)])
        for number, call in enumerate(calls):
            found = call(d)
            assert found.placements == (Shard(0),), number
            assert_close(found.full_tensor(), call(x))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _line(run)


def test_conjugates_are_resolved_before_they_leave_the_mesh() -> None:
    x = plugrad.complex(_matrix(), _matrix() + 1)

    def run(mesh: Any) -> None:
        d = distribute_tensor(x, mesh, [Shard(0)]).conj()
        assert_close(d.full_tensor(), x.conj().resolve_conj())
        assert_close(d.imag.full_tensor(), -x.imag)
        with plugrad.no_grad():
            part = x.conj().resolve_conj().chunk(2)[dist.get_rank()]
            assert_close(d.to_local(), part)

    _line(run)


def test_what_counts_all_elements_says_that_it_gathers() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(plugrad.tensor([1, 3, 1, 0]), mesh, [Shard(0)])
        assert x.unique().full_tensor().tolist() == [0, 1, 3]

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        _line(run)
        _line(run)
    told = [one for one in seen if "_unique2" in str(one.message)]
    assert len(told) <= 1


def test_a_tensor_like_a_sum_needs_no_sum() -> None:
    def run(mesh: Any) -> list[str]:
        x = DTensor.from_local(_matrix(), mesh, [P])
        with plugrad.autograd.profiler.profile() as profile:
            ones = plugrad.ones_like(x)
        assert_close(ones.full_tensor(), plugrad.ones(4, 6))
        return [event.name for event in profile.function_events]

    for names in _line(run):
        assert any("ones_like" in one for one in names)
        assert not [one for one in names if "distributed" in one]


def test_an_operator_without_a_rule_gathers_and_says_so_once() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(_matrix(), mesh, [Shard(0)])
        for _ in range(2):
            found = x.take(plugrad.tensor([3, 7], device=x.device))
            assert_close(found.full_tensor(), plugrad.tensor([3.0, 7.0]))

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        _line(run)
        _line(run)
    told = [str(one.message) for one in seen if "plugrad::take" in str(one.message)]
    assert len(told) <= 1
    for text in told:
        assert "no propagation rule" in text
        assert "register_sharding" in text


@pytest.fixture
def cube() -> Iterator[Any]:
    """An operator of a third party, with a gradient; says on how many elements it ran."""
    library = plugrad.library.Library("third_party", "DEF")
    library.define("cube(Tensor self) -> Tensor")
    sizes: list[int] = []

    def kernel(array: Any) -> Any:
        sizes.append(array.size)
        return array**3

    library.impl("cube", kernel, "CPU")
    plugrad.library.register_fake("third_party::cube", lambda x: plugrad.empty_like(x))
    plugrad.library.register_autograd(
        "third_party::cube",
        lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    yield sizes
    library._destroy()


def test_a_third_party_s_rule_saves_gathering(cube: list[int]) -> None:
    x = _matrix(4, 2)
    overload = plugrad.ops.third_party.cube.default

    def run(mesh: Any) -> Any:
        leaf = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
        found = overload(leaf)
        found.sum().backward()
        assert_close(found.full_tensor().detach(), x**3)
        assert_close(leaf.grad.full_tensor(), 3 * x**2)
        return found.placements

    with pytest.warns(UserWarning, match="no propagation rule for third_party::cube"):
        assert _line(run) == [(R,), (R,)]
    assert set(cube) == {8}
    cube.clear()

    @register_sharding(overload)
    def rule(x: Any) -> Any:
        return [([Shard(dim)], [Shard(dim)]) for dim in range(x.ndim)]

    assert _line(run) == [(Shard(0),), (Shard(0),)]
    assert set(cube) == {4}


def test_a_rule_that_answers_wrongly_is_named(cube: list[int]) -> None:
    @register_sharding(plugrad.ops.third_party.cube.default)
    def rule(x: Any) -> Any:
        return [([Shard(0), Shard(0)], [Shard(0)])]

    def run(mesh: Any) -> None:
        x = distribute_tensor(_matrix(), mesh, [Shard(0)])
        with pytest.raises(ValueError, match="a rule of third_party::cube must give 1 output"):
            plugrad.ops.third_party.cube.default(x)

    _line(run)
    with pytest.raises(TypeError, match="op must be an overload"):
        register_sharding(plugrad.exp)


def test_writes_to_whole_copies_of_parts_are_refused() -> None:
    library = plugrad.library.Library("third_party_writes", "DEF")
    library.define("double_both(Tensor(a!) x, Tensor(b!) y) -> ()")

    def kernel(x: Any, y: Any) -> None:
        x *= 2
        y *= 2

    library.impl("double_both", kernel, "CPU")

    def run(mesh: Any) -> None:
        double = plugrad.ops.third_party_writes.double_both
        whole, part = (distribute_tensor(plugrad.ones(4), mesh, [one]) for one in (R, Shard(0)))
        other = whole.clone()
        double(whole, other)
        assert_close(whole.full_tensor() + other.full_tensor(), plugrad.full((4,), 4.0))
        with pytest.raises(NotImplementedError, match="writes to several arguments"):
            double(whole, part)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _line(run)
    library._destroy()


def test_plain_tensors_are_replicated_where_that_is_declared() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(_matrix(), mesh, [Shard(0)])
        with implicit_replication():
            found = x + plugrad.ones(6)
        assert_close(found.full_tensor(), _matrix() + 1)

    _line(run)


def test_local_map_calls_a_function_on_parts() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(_matrix(), mesh, [Shard(0)]).requires_grad_()

        @local_map(
            out_placements=([P], None), in_placements=([Shard(1)],), redistribute_inputs=True
        )
        def total(part: Any) -> Any:
            return part.sum(), part.shape[1]

        found, columns = total(x)
        assert columns == 3
        assert_close(found.full_tensor().detach(), _matrix().sum())
        found.full_tensor().backward()
        assert_close(x.grad.full_tensor(), plugrad.ones(4, 6))
        strict = local_map(lambda part: part, [Shard(1)], ([Shard(1)],))
        with pytest.raises(ValueError, match="redistribute_inputs=True"):
            strict(x)

    _line(run)


def _one_process(draw: Callable[[], Any]) -> Any:
    with plugrad.random.fork_rng():
        plugrad.manual_seed(11)
        return draw()


@pytest.mark.parametrize("placement", [R, Shard(0), Shard(1)])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_random_tensors_are_those_of_one_process(name: str, placement: Any) -> None:
    expected = _one_process(lambda: getattr(plugrad, name)(5, 3))

    def run(mesh: Any) -> Any:
        distribute_tensor(plugrad.ones(2), mesh, [R])  # the mesh becomes a device, which is seeded
        dist.barrier()
        if dist.get_rank() == 0:
            plugrad.manual_seed(11)
        dist.barrier()
        return getattr(dtensor, name)(5, 3, device_mesh=mesh, placements=[placement]).full_tensor()

    for found in _line(run):
        assert_close(found, expected)


@pytest.mark.parametrize("placement", [R, Shard(0), Shard(1)])
def test_dropout_and_draws_in_place_are_those_of_one_process(placement: Any) -> None:
    def draw(x: Any) -> list[Any]:
        noise = plugrad.empty_like(x).normal_(1.0, 2.0)
        return [F.dropout(x, 0.4), noise, plugrad.rand_like(x), F.dropout(x, 0.5)]

    expected = _one_process(lambda: draw(_matrix()))

    def run(mesh: Any) -> Any:
        x = distribute_tensor(_matrix(), mesh, [placement])
        plugrad.rand(1, device=x.device)  # the mesh has a generator now
        dist.barrier()
        if dist.get_rank() == 0:
            plugrad.manual_seed(11)
        dist.barrier()
        return [one.full_tensor() for one in draw(x)]

    for found in _line(run):
        for one, wanted in zip(found, expected, strict=True):
            assert_close(one, wanted)


def test_the_gradient_of_dropout_is_masked_as_its_result() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(plugrad.ones(6, 4), mesh, [Shard(0)]).requires_grad_()
        found = F.dropout(x, 0.5)
        found.sum().backward()
        assert_close(x.grad.full_tensor(), found.full_tensor().detach())

    _line(run)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_tensors_are_made_in_parts(name: str) -> None:
    def run(mesh: Any) -> None:
        made = getattr(dtensor, name)(5, 2, device_mesh=mesh, placements=[Shard(0)])
        assert made.to_local().shape == (3 - dist.get_rank(), 2)
        assert made.shape == (5, 2)
        with mesh:
            full = dtensor.full((5, 2), 3.0, placements=[Shard(0)], requires_grad=True)
        assert full.requires_grad
        assert_close(full.full_tensor().detach(), plugrad.full((5, 2), 3.0))

    _line(run)
