"""Tensors on arrays that are spread over a mesh: making them, mixing them, writing to them.

Oracle: the same on one device.
"""

from __future__ import annotations

import copy
import io
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import plugrad
import plugrad_jax
from plugrad.dispatch.backends.active import find_backend

MESH = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))
ROWS = NamedSharding(MESH, P("data", None))


def grid(rows: int = 4, columns: int = 2) -> Any:
    return plugrad.arange(float(rows * columns)).reshape(rows, columns)


def spread(tensor: Any, spec: Any = ("data", None)) -> Any:
    return plugrad_jax.shard(tensor, MESH, spec)


def is_spread_by_rows(tensor: Any) -> bool:
    found: bool = plugrad_jax.sharding_of(tensor).is_equivalent_to(ROWS, 2)
    return found


# Making


@pytest.mark.parametrize("device", ["cpu", "jax:0", "jax:3"])
def test_sharding_keeps_the_elements_and_splits_the_array(device: str) -> None:
    x = grid().to(device)
    y = spread(x)
    assert (y.tolist(), y.shape, y.dtype, str(y.device)) == (x.tolist(), x.shape, x.dtype, "jax:0")
    assert plugrad_jax.sharding_of(y) == ROWS
    assert [shard.data.shape for shard in y.array.addressable_shards] == [(2, 2)] * 4


@pytest.mark.parametrize(
    ("mesh", "spec"),
    [(MESH, P("data")), (MESH, ("data",)), (MESH, ROWS), (ROWS, None), (None, ROWS)],
    ids=["PartitionSpec", "tuple", "NamedSharding", "in place of the mesh", "without a mesh"],
)
def test_specs_may_be_said_in_several_ways(mesh: Any, spec: Any) -> None:
    assert is_spread_by_rows(plugrad_jax.shard(grid(), mesh, spec))


def test_axes_whose_sharding_jax_would_check_are_left_to_xla() -> None:
    mesh = Mesh(MESH.devices, MESH.axis_names, axis_types=(AxisType.Explicit,) * 2)
    x = plugrad_jax.shard(grid(), mesh, ("data", None))
    assert (x @ x.t()).tolist() == (grid() @ grid().t()).tolist()
    array = jax.device_put(np.ones((4, 2), np.float32), NamedSharding(mesh, P("data")))
    y = plugrad_jax.from_jax(array)
    assert (x + y).tolist() == (grid() + 1).tolist()
    assert is_spread_by_rows(y)


@pytest.mark.parametrize(
    ("shape", "spec", "words"),
    [
        ((3, 2), ("data",), r"of shape \[3, 2\] on a mesh of data=2, model=2: 3 elements of dim"),
        ((4, 3), (None, "model"), "3 elements of dimension 1 cannot be divided by 2"),
        ((6,), (("data", "model"),), "6 elements of dimension 0 cannot be divided by 4"),
        ((4,), ("rows",), "the mesh has no axis 'rows'"),
        ((4,), ("data", None), "it is about 2 dimensions, and there are 1"),
        ((), ("data",), "it is about 1 dimensions, and there are 0"),
        ((4, 4), ("data", "data"), "axis 'data' is in it twice"),
    ],
)
def test_specs_that_do_not_fit(shape: Any, spec: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plugrad_jax.shard(plugrad.ones(shape), MESH, spec)


def test_arguments_of_other_types() -> None:
    with pytest.raises(TypeError, match=r"shard\(\): expected a Tensor, got ndarray"):
        plugrad_jax.shard(np.ones(4), MESH, ("data",))
    with pytest.raises(TypeError, match=r"mesh must be a jax\.sharding\.Mesh, got list"):
        plugrad_jax.shard(grid(), jax.devices(), ("data",))
    with pytest.raises(TypeError, match="spec must be a PartitionSpec, a tuple or a NamedSharding"):
        plugrad_jax.shard(grid(), MESH, "data")
    with pytest.raises(ValueError, match="a NamedSharding of another mesh"):
        plugrad_jax.shard(grid(), Mesh(np.array(jax.devices()[:2]), ("data",)), ROWS)
    with pytest.raises(ValueError, match="on a single device: give a mesh"):
        plugrad_jax.replicate(grid().to("jax:0"))
    with pytest.raises(TypeError, match="the tensor is on device cpu: move it first"):
        plugrad_jax.sharding_of(grid())


def test_a_mesh_without_the_first_device() -> None:
    mesh = Mesh(np.array(jax.devices()[3:1:-1]), ("data",))
    x = plugrad_jax.shard(grid(), mesh, ("data",))
    assert (str(x.device), (x + x).tolist()) == ("jax:2", (grid() * 2).tolist())
    assert (x + plugrad.ones(2, device="jax:2")).tolist() == (grid() + 1).tolist()
    with pytest.raises(RuntimeError, match="at least two devices, jax:2 and jax:0!"):
        x + plugrad.ones(2, device="jax:0")


def test_arrays_of_jax_come_and_go_as_they_are() -> None:
    array = jax.device_put(np.ones((4, 2), np.float32), ROWS)
    x = plugrad_jax.from_jax(array)
    assert plugrad_jax.to_jax(x) is array
    assert (str(x.device), x.sum().item()) == ("jax:0", 8.0)


# The graph


@pytest.mark.parametrize("device", ["cpu", "jax:0", "jax:3"])
def test_gradients_go_back_to_where_the_tensor_is(device: str) -> None:
    x = grid().to(device).requires_grad_()
    y = spread(x, ("data", "model"))
    (grad,) = plugrad.autograd.grad((y**3).sum(), x, create_graph=True)
    assert (grad.tolist(), str(grad.device)) == ((3 * grid() ** 2).tolist(), device)
    if device != "cpu":
        assert grad.array.devices() == x.array.devices()
    (second,) = plugrad.autograd.grad(grad.sum(), x)
    assert second.tolist() == (6 * grid()).tolist()


def test_gradients_of_leaves_are_where_the_leaves_are() -> None:
    w = spread(plugrad.ones(4, 2)).requires_grad_()
    # What comes to it is on every device.
    (w * plugrad_jax.replicate(grid(), MESH)).sum().backward()
    assert plugrad_jax.sharding_of(w.grad) == ROWS
    (w * 2).sum().backward()
    assert plugrad_jax.sharding_of(w.grad) == ROWS
    assert w.grad.tolist() == (grid() + 2).tolist()


def test_tangents_pass() -> None:
    def f(x: Any) -> Any:
        return spread(x).square()

    value, tangent = plugrad.func.jvp(f, (grid(),), (plugrad.ones(4, 2),))
    assert (value.tolist(), tangent.tolist()) == ((grid() ** 2).tolist(), (grid() * 2).tolist())


def test_back_to_one_device() -> None:
    x = spread(grid()).requires_grad_()
    y = plugrad_jax.unshard(x)
    assert y.array.devices() == {jax.devices()[0]}
    y.sum().backward()
    assert plugrad_jax.sharding_of(x.grad) == ROWS
    z = x.detach().to("jax:3")
    assert (z.array.devices(), z.tolist()) == ({jax.devices()[3]}, grid().tolist())
    assert x.detach().cpu().tolist() == grid().tolist()


# Mixing


def test_operands_on_one_device_come_to_the_mesh() -> None:
    x, row = spread(grid()), plugrad.tensor([10.0, 20.0], device="jax:0")
    for found in (x + row, row + x, plugrad.add(row, x)):
        assert found.tolist() == (grid() + row.cpu()).tolist()
        assert is_spread_by_rows(found)
    assert row.array.devices() == {jax.devices()[0]}
    assert plugrad.cat([row[None], x]).tolist() == [[10.0, 20.0], *grid().tolist()]
    assert plugrad.where(row > 15, x, row).tolist() == [[10.0, y] for y in (1.0, 3.0, 5.0, 7.0)]
    index = plugrad.tensor([3, 0], device="jax:0")
    assert x[index].tolist() == x[plugrad.tensor([3, 0])].tolist() == [[6.0, 7.0], [0.0, 1.0]]


def test_numbers_and_zero_dim_tensors() -> None:
    x = spread(grid())
    for two in (2, 2.0, plugrad.tensor(2.0), plugrad.tensor(2.0, device="jax:0")):
        assert (x * two).tolist() == (grid() * 2).tolist()
        assert is_spread_by_rows(x * two)


def test_gradients_of_operands_on_one_device() -> None:
    row = plugrad.tensor([10.0, 20.0], device="jax:0", requires_grad=True)
    x = spread(grid()).requires_grad_()
    (row * x).sum().backward()
    assert row.grad.tolist() == grid().sum(0).tolist()
    assert x.grad.tolist() == [[10.0, 20.0]] * 4
    row.grad = None
    (row * 2).sum().backward()
    assert row.grad.tolist() == [2.0, 2.0]


def test_two_meshes_do_not_mix() -> None:
    two = Mesh(np.array(jax.devices()[:2]), ("data",))
    with pytest.raises(RuntimeError, match="a mesh of data=2, model=2 and one over a mesh of dat"):
        spread(grid()) + plugrad_jax.shard(grid(), two, ("data",))


def test_other_errors_are_those_of_one_device() -> None:
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        spread(grid()) + plugrad.ones(3, device="jax:0")
    with pytest.raises(RuntimeError, match="at least two devices, jax:0 and jax:1!"):
        spread(grid()) + plugrad.ones(2, device="jax:1")


def test_tensors_like_one_are_where_it_is() -> None:
    x = spread(grid())
    made = {
        "zeros": plugrad.zeros_like(x),
        "ones": plugrad.ones_like(x, dtype=plugrad.int64),
        "empty": plugrad.empty_like(x),
        "full": plugrad.full_like(x, 7),
        "rand": plugrad.rand_like(x),
        "randn": plugrad.randn_like(x),
        "randint": plugrad.randint_like(x, 3, 5),
    }
    for name, tensor in made.items():
        assert (name, plugrad_jax.sharding_of(tensor)) == (name, ROWS)
        assert (tensor.shape, str(tensor.device)) == (x.shape, "jax:0")
    assert made["ones"].dtype is plugrad.int64
    assert made["full"].tolist() == [[7.0, 7.0]] * 4
    assert set(made["randint"].flatten().tolist()) <= {3.0, 4.0}
    assert plugrad.zeros_like(x, device="jax:1").array.devices() == {jax.devices()[1]}
    assert str(plugrad.ones_like(x, device="cpu").device) == "cpu"
    plain = plugrad.zeros_like(grid().to("jax:1"), memory_format=plugrad.contiguous_format)
    assert plain.array.devices() == {jax.devices()[1]}
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8"):
        plugrad.full_like(spread(plugrad.ones(4, 2, dtype=plugrad.uint8)), 300)


def test_random_numbers_are_those_of_one_device() -> None:
    x = grid().to("jax:0")

    def draw(x: Any) -> list[Any]:
        plugrad.manual_seed(3)
        drawn = [plugrad.rand_like(x), plugrad.randn_like(x), plugrad.empty_like(x).uniform_(1, 2)]
        drawn += [plugrad.bernoulli(x / 8), plugrad.nn.functional.dropout(x + 1)]
        return [each.tolist() for each in [*drawn, plugrad.rand(3, device="jax:0")]]

    assert draw(spread(x)) == draw(x)


def test_values_that_decide_on_shapes() -> None:
    x = spread(grid())
    assert x[x > 2].tolist() == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert plugrad.nonzero(x > 5).tolist() == [[3, 0], [3, 1]]
    assert plugrad.unique(x % 2).tolist() == [0.0, 1.0]


def test_indices_out_of_range_are_noticed() -> None:
    x = spread(grid())
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        x[plugrad.tensor([0, 4], device="jax:0")].tolist()


def test_kernels_that_xla_cannot_divide_run_whole() -> None:
    from plugrad_jax.sharding.beginning import begin
    from plugrad_jax.sharding.mixing import run_again

    begin()
    x = spread(grid())
    error = jax.errors.JaxRuntimeError("INVALID_ARGUMENT: no\nmore")
    with pytest.warns(UserWarning, match="XLA cannot divide a kernel, sin, .* says: INVALID_ARG"):
        found = run_again(jax.numpy.sin, (x.array,), error)
    assert found.sharding.is_fully_replicated
    for other in (error, ValueError("no"), jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no")):
        plain = (grid().to("jax:0").array,) if other is error else (x.array,)
        with pytest.raises(type(other), match=str(other).partition("\n")[0]):
            run_again(jax.numpy.sin, plain, other)


# Writing


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.mul_(plugrad.tensor([2.0, 3.0], device=x.device)),
        lambda x: x.copy_(plugrad.ones(4, 2)),
        lambda x: x.zero_(),
        lambda x: x.fill_(3),
        lambda x: x[1:].add_(1),
        lambda x: x.t().mul_(2),
        lambda x: x.__setitem__(0, 5.0),
        lambda x: x.clamp_(1, 3).sub_(x.sum()),
    ],
    ids=["add_", "mul_", "copy_", "zero_", "fill_", "rows", "transposed", "item", "several"],
)
def test_writes_leave_a_tensor_where_it_is(write: Any) -> None:
    expected, x = grid(), spread(grid())
    view = x.view(8)
    write(expected)
    write(x)
    assert x.tolist() == expected.tolist()
    assert view.tolist() == expected.flatten().tolist()
    assert plugrad_jax.sharding_of(x) == ROWS


def test_what_is_on_every_device_is_split_when_it_is_written() -> None:
    x = spread(grid())
    x.copy_(plugrad_jax.replicate(grid() + 1, MESH))
    assert (plugrad_jax.sharding_of(x), x.tolist()) == (ROWS, (grid() + 1).tolist())


def test_a_plain_tensor_can_be_written_to() -> None:
    total = plugrad.zeros((), device="jax:0")
    for _ in range(2):
        total += spread(grid()).sum()
    assert (total.item(), str(total.device)) == (56.0, "jax:0")
    assert (total + plugrad.ones((), device="jax:0")).item() == 57.0


# Keeping


def test_copies_are_where_the_tensor_is() -> None:
    x = spread(grid())
    for copied in (x.clone(), copy.deepcopy(x), x.detach(), x.to(plugrad.float64), x.contiguous()):
        assert is_spread_by_rows(copied)
        assert copied.tolist() == grid().tolist()


def test_state_is_saved_whole_and_loaded_in_parts() -> None:
    net = plugrad.nn.Linear(2, 4)
    plugrad_jax.shard_parameters(net, MESH, {"weight": ("model", None)})
    expected = net.weight.tolist()
    file = io.BytesIO()
    plugrad.save(net.state_dict(), file)
    other = plugrad_jax.shard_parameters(
        plugrad.nn.Linear(2, 4), MESH, {"weight": (None, "data"), "bias": ("data",)}
    )
    file.seek(0)
    other.load_state_dict(plugrad.load(file))
    assert other.weight.tolist() == expected
    assert tuple(plugrad_jax.sharding_of(other.weight).spec) == (None, "data")
    assert tuple(plugrad_jax.sharding_of(other.bias).spec) == ("data",)


def test_memory_of_several_devices_is_not_shared() -> None:
    with pytest.raises(BufferError):
        np.from_dlpack(spread(grid()))


def test_devices_can_be_waited_for() -> None:
    queue = find_backend("jax").queue(0)
    x = spread(grid())
    queue.synchronize()
    assert x.array.is_ready()


# Modules


def net() -> Any:
    plugrad.manual_seed(0)
    layers = [plugrad.nn.Linear(4, 8), plugrad.nn.BatchNorm1d(8), plugrad.nn.Linear(8, 2)]
    return plugrad.nn.Sequential(*layers)


def test_parameters_are_placed_by_the_first_rule_that_fits() -> None:
    module = net()
    before = dict(module.named_parameters())
    values = {name: parameter.tolist() for name, parameter in before.items()}
    rules = [(r"0\.weight", ("model", None)), (r"weight", P()), (r"^0|running", ("model",))]
    assert plugrad_jax.shard_parameters(module, MESH, rules) is module
    placed = {
        name: tuple(plugrad_jax.sharding_of(tensor).spec)
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]
    }
    assert placed == {
        "0.weight": ("model", None),
        "0.bias": ("model",),
        "1.weight": (),
        "1.bias": (),
        "1.running_mean": ("model",),
        "1.running_var": ("model",),
        "1.num_batches_tracked": (),
        "2.weight": (),
        "2.bias": (),
    }
    for name, parameter in module.named_parameters():
        assert parameter is before[name]
        assert (parameter.tolist(), parameter.requires_grad) == (values[name], True)
        assert (parameter.is_leaf, str(parameter.device)) == (True, "jax:0")


def test_gradients_follow_their_parameters() -> None:
    module = net()
    module(grid(4, 4)).sum().backward()
    expected = module[0].weight.grad.tolist()
    plugrad_jax.shard_parameters(module, MESH, {"0.weight": ("model",)})
    grad = module[0].weight.grad
    assert (grad.tolist(), tuple(plugrad_jax.sharding_of(grad).spec)) == (expected, ("model",))


def test_a_rule_that_does_not_fit_names_the_parameter_and_changes_nothing() -> None:
    module = net()
    words = r"fit '2.bias' of shape \[2\] on a mesh of data=2, model=2: 2 .* be divided by 4"
    with pytest.raises(ValueError, match=words):
        plugrad_jax.shard_parameters(module, MESH, {"bias": (("data", "model"),)})
    assert {str(parameter.device) for parameter in module.parameters()} == {"cpu"}


def test_rules_that_are_none() -> None:
    with pytest.raises(TypeError, match=r"expected a plugrad.nn.Module, got dict"):
        plugrad_jax.shard_parameters({}, MESH)
    with pytest.raises(TypeError, match="a rule is a regular expression and a spec, got 'weight'"):
        plugrad_jax.shard_parameters(net(), MESH, ["weight"])
    with pytest.raises(ValueError, match="'\\*' is not a regular expression"):
        plugrad_jax.shard_parameters(net(), MESH, {"*": ()})
