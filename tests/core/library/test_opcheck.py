"""opcheck: what is declared of an operator against what it does."""

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.library import Library, OpCheckError, Tag, custom_op, opcheck

BY_TORCH = ("test_schema", "test_autograd_registration", "test_faketensor")


def _good(ns: str) -> Any:
    @custom_op(f"{ns}::cube", mutates_args=())
    def cube(x: plugrad.Tensor, n: int = 3) -> plugrad.Tensor:
        return x**n

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.n = inputs
        ctx.save_for_backward(x)

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * ctx.n * x ** (ctx.n - 1), None

    cube.register_autograd(backward, setup_context=setup_context)
    cube.register_fake(lambda x, n: plugrad.empty_like(x))
    cube.register_vmap(lambda info, in_dims, x, n: (cube(x, n), in_dims[0]))
    cube.register_kernel("cpu", lambda array, n: array**n, raw=True)
    return cube


def _x(**options: Any) -> plugrad.Tensor:
    return plugrad.tensor([0.5, 1.5, 2.0], **{"requires_grad": True, **options})


def test_a_good_operator_passes(ns: str, second_backend: str) -> None:
    cube = _good(ns)
    result = opcheck(cube, (_x(),))
    skipped = {name for name, text in result.items() if text.startswith("SKIPPED")}
    assert {text for name, text in result.items() if name not in skipped} == {"SUCCESS"}
    assert result["test_backends[second]"] == "SUCCESS"
    assert result["test_gradients[second]"] == "SUCCESS"
    for op in (cube._opoverload, getattr(plugrad.ops, ns).cube):
        assert opcheck(op, (_x(),), {"n": 2}, test_utils="test_schema") == {
            "test_schema": "SUCCESS"
        }


def test_the_arguments_stay_as_they_are(ns: str) -> None:
    @custom_op(f"{ns}::fill", mutates_args={"x"})
    def fill(x: plugrad.Tensor) -> None:
        x.fill_(7)

    x = plugrad.zeros(2)
    opcheck(fill, (x,))
    assert (x.tolist(), x._version) == ([0.0, 0.0], 0)


def test_torch_says_the_same_of_a_good_operator(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::double", mutates_args=())
    def double(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        return x * 2

    double.register_autograd(lambda ctx, grad: grad * 2)
    double.register_fake(lambda x: lib.empty_like(x))
    x = lib.ones(3, requires_grad=True)
    assert lib.library.opcheck(double, (x,), test_utils=BY_TORCH) == dict.fromkeys(
        BY_TORCH, "SUCCESS"
    )


def _expect(lib: Any, op: Any, args: Any, check: str, message: str) -> None:
    error = OpCheckError if lib is plugrad else Exception
    with pytest.raises(error, match=message) as caught:
        lib.library.opcheck(op, args, test_utils=check)
    assert type(caught.value).__name__ == "OpCheckError"
    assert str(caught.value).startswith(f"opcheck(op, ...): {check} failed with")
    found = lib.library.opcheck(op, args, test_utils=check, raise_exception=False)
    assert found[check] != "SUCCESS"


def test_an_undeclared_write(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        np.asarray(x.numpy()).fill(3)
        return x.clone()

    _expect(lib, f, (lib.zeros(2),), "test_schema", "x|mutat")
    if lib is plugrad:
        with pytest.raises(OpCheckError, match=r'not written to, but .* changed it.*args=\{"x"\}'):
            opcheck(f, (lib.zeros(2),))


def test_an_undeclared_alias(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        own.define("g(Tensor x) -> (Tensor, Tensor)")
        own.impl("f", lambda array: array[:1], "CPU")
        own.impl("g", lambda array: (array + 1,) * 2, "CPU")
        ops = getattr(plugrad.ops, ns)
        _expect(plugrad, ops.f, (plugrad.zeros(2),), "test_schema", "returned a view of its arg")
        _expect(plugrad, ops.g, (plugrad.zeros(2),), "test_schema", "results 0 and 1 .* share mem")


def test_a_declared_view_is_fine(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor(a) x) -> Tensor(a)")
        own.impl("f", lambda array: array[:1], "CPU")
        checked = opcheck(getattr(plugrad.ops, ns).f, (plugrad.zeros(2),), test_utils="test_schema")
        assert checked == {"test_schema": "SUCCESS"}


def test_a_write_that_nobody_counts(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor(a!) x) -> ()")
        own.impl("f", lambda array: array.fill(1), "CPU")
        op = getattr(plugrad.ops, ns).f
        assert (
            opcheck(op, (plugrad.zeros(2),), test_utils="test_schema")["test_schema"] == "SUCCESS"
        )
        own.impl("f", plugrad.library.fallthrough_kernel, "ADInplaceOrView")
        _expect(plugrad, op, (plugrad.zeros(2),), "test_schema", "its version counter stays the")


def test_a_graph_recorded_below_autograd(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        own.impl("f", lambda keyset, x: x * 2, "CPU", with_keyset=True)
        op = getattr(plugrad.ops, ns).f
        _expect(plugrad, op, (_x(),), "test_autograd_registration", "no kernel for an Autograd")


def test_a_fake_that_is_missing_or_wrong(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        return x[:1].double()

    x = (lib.ones(3),)
    _expect(lib, f, x, "test_faketensor", "no fake impl")
    f.register_fake(lambda x: x.new_empty((1,)))
    _expect(lib, f, x, "test_faketensor", "dtype|Dtypes")
    f.register_fake(lambda x: x.new_empty((2,), dtype=lib.float64))
    _expect(lib, f, x, "test_faketensor", "shape|Shapes")
    f.register_fake(lambda x: x.new_empty((1,), dtype=lib.float64))
    assert lib.library.opcheck(f, x, test_utils="test_faketensor")["test_faketensor"] == "SUCCESS"


def test_a_fake_with_a_size_that_depends_on_data(ns: str) -> None:
    limits: dict[str, Any] = {}

    @custom_op(f"{ns}::kept", mutates_args=())
    def kept(x: plugrad.Tensor) -> plugrad.Tensor:
        return x[x > 0]

    @kept.register_fake
    def _(x: plugrad.Tensor) -> plugrad.Tensor:
        size = plugrad.library.get_ctx().new_dynamic_size(**limits)
        return x.new_empty((size,))  # type: ignore[attr-defined, no-any-return]

    x = (plugrad.tensor([1.0, -1.0, 2.0]),)
    assert opcheck(kept, x, test_utils="test_faketensor")["test_faketensor"] == "SUCCESS"
    limits["max"] = 1
    _expect(plugrad, kept, x, "test_faketensor", r"size of 2, but its fake declared .*max=1")


def test_a_wrong_gradient(ns: str) -> None:
    cube = _good(ns)
    cube.register_autograd(lambda ctx, grad: (grad, None))
    _expect(plugrad, cube, (_x(),), "test_gradients", "is not what finite differences give")


def test_a_wrong_second_gradient(ns: str) -> None:
    cube = _good(ns)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 3 * ctx.saved_tensors[0].detach() ** 2, None

    cube.register_autograd(backward, setup_context=setup_context)
    _expect(
        plugrad, cube, (_x(),), "test_gradients", "the second gradient .* finite differences of"
    )
    cube.register_autograd(
        plugrad.autograd.function.once_differentiable(backward), setup_context=setup_context
    )
    result = opcheck(cube, (_x(),), test_utils="test_gradients")
    assert result["test_gradients"] == "SUCCESS"
    assert "once_differentiable" in result["test_gradients[second]"]


def test_numbers_that_were_taken_out_are_no_program(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        own.define("g(Tensor x) -> Tensor")
        own.impl("f", lambda x: x * x[0].item(), "CompositeImplicitAutograd")
        own.impl("g", lambda x: x * x[0], "CompositeImplicitAutograd")
        ops = getattr(plugrad.ops, ns)
        x = (plugrad.tensor([1.0, 2.0]),)
        _expect(plugrad, ops.f, x, "test_capture", "numbers that are taken out with item")
        assert opcheck(ops.g, x, test_utils="test_capture") == {"test_capture": "SUCCESS"}


def test_another_backend_that_differs(ns: str, second_backend: str) -> None:
    cube = _good(ns)
    cube.register_kernel("second", lambda array, n: array + n, raw=True)
    _expect(
        plugrad, cube, (_x(),), "test_backends", "other results on backend 'second' than on 'cpu'"
    )


def test_a_kernel_for_all_backends_that_is_for_one_only(ns: str, second_backend: str) -> None:
    @custom_op(f"{ns}::f", mutates_args=())
    def f(x: plugrad.Tensor) -> plugrad.Tensor:
        return plugrad.from_numpy(x.numpy() + 1)

    _expect(plugrad, f, (_x(),), "test_backends", r"backend '\w+', which raised TypeError: can't")


def test_another_backend_that_has_no_kernel(ns: str, second_backend: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        own.impl("f", lambda array: array, "CPU")
        result = opcheck(getattr(plugrad.ops, ns).f, (_x(),), test_utils="test_backends")
    assert result["test_backends[second]"] == "SKIPPED: there is no kernel for it"


def test_a_wrong_rule_for_batches(ns: str) -> None:
    @custom_op(f"{ns}::total", mutates_args=())
    def total(x: plugrad.Tensor, y: plugrad.Tensor) -> plugrad.Tensor:
        return x.sum() + y.sum()

    @total.register_vmap
    def _(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
        return (x.sum() + y.sum()).expand(info.batch_size), 0

    args = (_x(), _x())
    _expect(plugrad, total, args, "test_vmap", "for element 0 of the batch than the operator gives")

    @total.register_vmap
    def _(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
        sums = [
            t.sum() if dim is None else t.movedim(dim, 0).flatten(1).sum(1)
            for t, dim in zip((x, y), in_dims, strict=True)
        ]
        return sums[0] + sums[1], 0

    assert opcheck(total, args, test_utils="test_vmap") == {"test_vmap": "SUCCESS"}


def test_random_operators_are_not_compared(ns: str) -> None:
    @custom_op(f"{ns}::noise", mutates_args=(), tags=Tag.nondeterministic_seeded)
    def noise(x: plugrad.Tensor) -> plugrad.Tensor:
        return plugrad.rand_like(x)

    noise.register_autograd(lambda ctx, grad: grad)
    noise.register_vmap(lambda info, in_dims, x: (noise(x), in_dims[0]))
    checks = ("test_gradients", "test_capture", "test_backends", "test_vmap")
    result = opcheck(noise, (_x(),), test_utils=("test_schema", *checks))
    assert result.pop("test_schema") == "SUCCESS"
    assert set(result.values()) == {"SKIPPED: it draws random numbers"}


def test_results_that_depend_on_more_than_the_arguments(ns: str) -> None:
    calls: list[int] = []

    @custom_op(f"{ns}::f", mutates_args=())
    def f(x: plugrad.Tensor) -> plugrad.Tensor:
        calls.append(1)
        return x * len(calls)

    _expect(plugrad, f, (_x(),), "test_schema", "other results when .* again(.|\n)*seeded")


def test_arguments_that_are_no_tensors(ns: str, second_backend: str) -> None:
    @custom_op(f"{ns}::f", mutates_args=())
    def f(
        x: list[plugrad.Tensor | None], how: str, dtype: plugrad.dtype, sizes: list[int]
    ) -> plugrad.Tensor:
        return next(item for item in x if item is not None) * 2

    f.register_fake(lambda x, how, dtype, sizes: plugrad.empty_like(x[1]))
    result = opcheck(f, ([None, _x()], "up", plugrad.int32, [1, 2]))
    assert (result["test_capture"], result["test_backends[second]"]) == ("SUCCESS", "SUCCESS")


def test_a_backward_that_cannot_be_recorded(ns: str) -> None:
    @custom_op(f"{ns}::f", mutates_args=())
    def f(x: plugrad.Tensor) -> plugrad.Tensor:
        return x * 2

    f.register_autograd(lambda ctx, grad: plugrad.from_numpy(grad.numpy() * 2))
    result = opcheck(f, (_x(),), test_utils="test_gradients")
    assert result["test_gradients"] == "SUCCESS"
    assert result["test_gradients[second]"].startswith(
        "SKIPPED: backward cannot be recorded: Can't call numpy()"
    )


def test_a_composite_that_asks_for_values(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        own.impl("f", lambda x: x * x.sum().item())
        _expect(plugrad, getattr(plugrad.ops, ns).f, (_x(),), "test_faketensor", "make it a custom")


def test_what_opcheck_cannot_take(lib: Any, ns: str) -> None:
    with pytest.raises(ValueError, match=r"opcheck\(op, \.\.\.\): op must be inst"):
        lib.library.opcheck(lambda x: x, (1,))
    op = lib.ops.plugrad.sin.default if lib is plugrad else lib.ops.aten.sin.default
    with pytest.raises(ValueError, match="expected test_utils to be subset of"):
        lib.library.opcheck(op, (lib.ones(1),), test_utils="test_nothing")
    with pytest.raises(ValueError, match="if you specify one of rtol/atol, you must specify both"):
        lib.library.opcheck(op, (lib.ones(1),), atol=1.0)
    packet = lib.ops.plugrad.add if lib is plugrad else lib.ops.aten.add
    with pytest.raises(RuntimeError, match="can only test operators without overloads"):
        lib.library.opcheck(packet, (lib.ones(1),))


@pytest.mark.parametrize("name", ["sin", "mm", "sum", "sort", "view", "mul_.Tensor", "softmax.int"])
def test_the_cores_operators_pass(name: str) -> None:
    x = plugrad.tensor([[0.5, 1.5], [2.0, -1.0]], dtype=plugrad.float64, requires_grad=True)
    args: dict[str, tuple[Any, ...]] = {
        "mm": (x, x),
        "view": (x, (4,)),
        "mul_.Tensor": (x, x),
        "softmax.int": (x, 0),
        "sum": (x, (0,)),
    }
    op = plugrad.dispatch.find_operator(f"plugrad::{name}")
    if op is None:
        op = plugrad.dispatch.find_operator(f"plugrad::{name.partition('.')[0]}")
    result = opcheck(op, args.get(name, (x,)))
    assert all(text == "SUCCESS" or text.startswith("SKIPPED") for text in result.values()), result


def test_arguments_that_are_no_tensors_are_recorded_too() -> None:
    arguments = {"dtype": plugrad.float32}
    result = opcheck(plugrad.ops.plugrad.exp, (_x(),), test_utils="test_capture")
    assert result == {"test_capture": "SUCCESS"}
    total = plugrad.ops.plugrad.sum
    assert opcheck(total, (_x(),), arguments, test_utils="test_capture") == result
