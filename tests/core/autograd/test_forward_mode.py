"""Dual tensors: levels, tangents, views, writes, modes and printing; on plugrad and on PyTorch."""

from __future__ import annotations

import copy
import gc
import importlib
import pickle
import re
import weakref
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def fw(lib: Any) -> Iterator[Any]:
    module = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
    yield module
    if module._current_level >= 0:
        module.exit_dual_level()


@pytest.fixture
def level(fw: Any) -> Iterator[None]:
    with fw.dual_level():
        yield


def tangent(fw: Any, tensor: Any) -> Any:
    found = fw.unpack_dual(tensor).tangent
    return None if found is None else found.tolist()


def dual(lib: Any, fw: Any, values: Any = (1.0, 2.0), along: Any = (3.0, 4.0)) -> Any:
    return fw.make_dual(lib.tensor(values), lib.tensor(along))


def test_a_level_begins_and_ends(fw: Any, lib: Any) -> None:
    assert fw.enter_dual_level() == 0
    y = dual(lib, fw) * 2
    assert tangent(fw, y) == [6.0, 8.0]
    fw.exit_dual_level()
    assert fw.unpack_dual(y).tangent is None
    with fw.dual_level() as number:
        assert number == 0
        assert tangent(fw, y) is None
        assert tangent(fw, y * 2) is None


def test_a_function_may_be_a_level(fw: Any, lib: Any) -> None:
    @fw.dual_level()
    def square(x: Any) -> Any:
        return tangent(fw, fw.make_dual(x, lib.ones(1)) ** 2)

    assert square(lib.tensor([3.0])) == [6.0]
    assert fw._current_level == -1


def test_an_error_ends_a_level(fw: Any) -> None:
    with pytest.raises(KeyError), fw.dual_level():
        raise KeyError
    assert fw._current_level == -1


def test_levels_do_not_nest(fw: Any, level: None) -> None:
    with pytest.raises(RuntimeError, match=r"^Nested forward mode AD is not supported at the"):
        fw.enter_dual_level()


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (None, "Dual level must be a positive number."),
        (5, "Trying to exit a forward AD level that was not the last one that was created. This"),
    ],
)
def test_only_the_last_level_can_be_exited(fw: Any, number: int | None, message: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(message)):
        fw.exit_dual_level(level=number)


def test_without_a_level(fw: Any, lib: Any) -> None:
    x = lib.ones(2)
    with pytest.raises(
        RuntimeError, match=r"^Trying to create a dual Tensor for forward AD but no"
    ):
        fw.make_dual(x, x)
    assert fw.unpack_dual(x).primal is x


def test_unknown_levels(fw: Any, lib: Any, level: None) -> None:
    x = lib.ones(2)
    with pytest.raises(RuntimeError, match=r"^Invalid level given to _make_dual$"):
        fw.make_dual(x, x, level=1)
    with pytest.raises(RuntimeError, match=r"^Invalid level given to _fw_primal$"):
        fw.unpack_dual(dual(lib, fw), level=1)


@pytest.mark.parametrize(
    ("primal", "along", "error", "message"),
    [
        ("ones", "long", ValueError, "^Expected tangent to be floating point or complex, but got:"),
        ("long", "ones", ValueError, "^Expected primal to be floating point or complex, but got:"),
        ("ones", "three", RuntimeError, r"^Trying to set a forward gradient that has a different"),
        ("ones", "one", RuntimeError, r"Tensor is of size \[2\] while .* is of size \[1\]\.$"),
        ("dual", "ones", RuntimeError, "^Making a dual Tensor based on a Tensor that already has"),
        ("ones", "dual", RuntimeError, "^Setting a forward grad that itself has a forward gradien"),
        # PyTorch's error comes from inside.
        ("number", "ones", (AttributeError, TypeError), "'float' object|must be Tensor, not float"),
        ("ones", "number", (AttributeError, TypeError), "'float' object|must be Tensor, not float"),
    ],
)
def test_what_cannot_be_a_dual_tensor(
    fw: Any, lib: Any, level: None, primal: str, along: str, error: Any, message: str
) -> None:
    known = {
        "ones": lib.ones(2),
        "long": lib.ones(2, dtype=lib.int64),
        "three": lib.ones(3),
        "one": lib.ones(1),
        "dual": dual(lib, fw),
        "number": 1.0,
    }
    with pytest.raises(error, match=message):
        fw.make_dual(known[primal], known[along])


def test_the_tangent_is_the_very_tensor(fw: Any, lib: Any, level: None) -> None:
    x, v = lib.ones(2), lib.zeros(2)
    made = fw.make_dual(x, v)
    assert fw.unpack_dual(made).tangent is v
    assert made._is_view()
    assert made._base is x
    assert fw.unpack_dual(x).tangent is None


@pytest.mark.strided
def test_a_tangent_that_lies_otherwise_in_memory_is_copied(fw: Any, lib: Any, level: None) -> None:
    v = lib.ones(3, 2).t()
    found = fw.unpack_dual(fw.make_dual(lib.ones(2, 3), v)).tangent
    assert found is not v
    assert found.stride() == (3, 1)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_a_tangent_may_have_another_dtype(fw: Any, lib: Any, level: None, dtype: str) -> None:
    made = fw.make_dual(lib.ones(2), lib.ones(2, dtype=getattr(lib, dtype)))
    for result in (made * lib.ones(2), made + lib.ones(2), made[0], made.sum()):
        assert str(fw.unpack_dual(result).tangent.dtype).endswith(dtype)


def test_the_primal_is_a_view_without_tangent(fw: Any, lib: Any, level: None) -> None:
    y = dual(lib, fw) * 1
    primal = fw.unpack_dual(y).primal
    assert tangent(fw, primal) is None
    assert tangent(fw, primal * 2) is None
    assert tangent(fw, primal[0]) is None
    with lib.no_grad():
        primal[0] = 7.0
    assert y[0].item() == 7.0


def test_what_drops_the_tangent(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw)
    dropped = [x.detach(), x.data, x.int(), x > 0, x.argmax(), copy.copy(x), copy.deepcopy(x)]
    dropped += [
        pickle.loads(pickle.dumps(x)),
        lib.zeros_like(x),
        x.new_zeros(2),
        x.clone().detach_(),
    ]
    assert [tangent(fw, item) for item in dropped] == [None] * len(dropped)


def test_what_keeps_the_tangent(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw)
    for item in (x.clone(), x.double(), x.to("cpu"), x.contiguous(), x.as_subclass(lib.Tensor)):
        assert tangent(fw, item) == [3.0, 4.0]
    x.data = lib.zeros(2)
    assert tangent(fw, x) == [3.0, 4.0]


def test_no_grad_does_not_stop_forward_mode(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw)
    with lib.no_grad():
        assert tangent(fw, x * 2) == [6.0, 8.0]


def test_inference_mode_does(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw)
    with lib.inference_mode():
        assert not fw._is_fwd_grad_enabled()
        assert tangent(fw, x) is None
        y = x * 2
    assert tangent(fw, y) is None


def test_forward_mode_can_be_off(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw)
    with fw._set_fwd_grad_enabled(False):
        assert not fw._is_fwd_grad_enabled()
        y = x * 2
        assert tangent(fw, x) is None
    assert fw._is_fwd_grad_enabled()
    assert tangent(fw, x) == [3.0, 4.0]
    assert tangent(fw, y) is None


def test_what_does_not_depend_on_the_input_has_zeros(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw)
    for item in (x.floor(), x.sign(), lib.bernoulli(x / 4), x.clone().normal_(), x.clone().zero_()):
        assert tangent(fw, item) == [0.0, 0.0]
    values, indices = x.max(0)
    assert tangent(fw, values) == 4.0
    assert tangent(fw, indices) is None


def test_an_operator_in_place_writes_to_the_tangent(fw: Any, lib: Any, level: None) -> None:
    v = lib.tensor([3.0, 4.0])
    x = fw.make_dual(lib.tensor([1.0, 2.0]), v)
    x.mul_(lib.tensor([2.0, 4.0]))
    assert fw.unpack_dual(x).tangent is v
    assert v.tolist() == [6.0, 16.0]


def test_results_do_not_share_tangents(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw)
    for y in (x + 1, x.clone(), x.to(lib.float64), x.contiguous() + 0, lib.where(x > 0, x, 0)):
        y.mul_(2)
        assert tangent(fw, x) == [3.0, 4.0]
        assert tangent(fw, y) == [6.0, 8.0]


def test_a_broadcast_tangent_can_be_written_to(fw: Any, lib: Any, level: None) -> None:
    y = dual(lib, fw, 1.0, 3.0) + lib.zeros(2)
    y.mul_(lib.tensor([1.0, 2.0]))
    assert tangent(fw, y) == [3.0, 6.0]


def test_the_tangent_of_a_view_is_a_view(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw) * 1
    part = x[:1]
    part.mul_(10)
    assert tangent(fw, part) == [30.0]
    assert tangent(fw, x) == [30.0, 4.0]
    x.mul_(2)
    assert tangent(fw, part) == [60.0]


def test_writing_to_a_view_gives_the_base_a_tangent(fw: Any, lib: Any, level: None) -> None:
    base = lib.zeros(4)
    part, other = base[:2], base[1:3]
    part.copy_(dual(lib, fw))
    assert tangent(fw, base) == [3.0, 4.0, 0.0, 0.0]
    assert tangent(fw, other) == [4.0, 0.0]
    assert tangent(fw, other * 2) == [8.0, 0.0]
    assert tangent(fw, base[1]) == 4.0
    assert tangent(fw, base.detach()) is None


def test_writing_to_a_base_gives_its_views_tangents(fw: Any, lib: Any, level: None) -> None:
    base = lib.zeros(2, 1)
    turned = base.t()
    base.add_(dual(lib, fw, [[1.0], [2.0]], [[3.0], [4.0]]))
    assert tangent(fw, turned * 2) == [[6.0, 8.0]]
    assert tangent(fw, turned) == [[3.0, 4.0]]


def test_writing_to_an_element(fw: Any, lib: Any, level: None) -> None:
    x = lib.zeros(3)
    x[1] = dual(lib, fw, 1.0, 5.0)
    assert tangent(fw, x * 2) == [0.0, 10.0, 0.0]
    x[1] = 7.0
    assert tangent(fw, x) == [0.0, 0.0, 0.0]


def test_operators_that_change_the_shape_in_place(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw, [[1.0, 2.0]], [[3.0, 4.0]]) * 1
    x.t_()
    assert tangent(fw, x) == [[3.0], [4.0]]
    x.unsqueeze_(0).squeeze_(2)
    assert tangent(fw, x) == [[3.0, 4.0]]


def test_views_of_a_tangent_that_lies_otherwise(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw, [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]])
    y = (x.t() * 1).contiguous()
    assert tangent(fw, y.view(4)) == [1.0, 3.0, 2.0, 4.0]
    assert tangent(fw, y.as_strided((2,), (3,), 0)) == [1.0, 4.0]


@pytest.mark.parametrize("function", ["mul", "add", "exp"])
def test_out_is_refused(fw: Any, lib: Any, level: None, function: str) -> None:
    count = 1 if function == "exp" else 2
    message = (
        f"^Trying to use forward AD with {function}_out that does not support it because it is"
    )
    with pytest.raises(NotImplementedError, match=message):
        getattr(lib, function)(*[dual(lib, fw)] * count, out=lib.empty(2))


def test_floor_divide_has_no_rule(fw: Any, lib: Any, level: None) -> None:
    with pytest.raises(
        NotImplementedError, match=r"^Trying to use forward AD with .*floor_divide th"
    ):
        dual(lib, fw) // 2


def test_resizing_is_refused(fw: Any, lib: Any, level: None) -> None:
    with pytest.raises(RuntimeError, match=r"^cannot resize variables that has a forward grad$"):
        dual(lib, fw).resize_(1)


@pytest.mark.strided
def test_printing(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw)
    assert repr(x) == "tensor([1., 2.], tangent=tensor([3., 4.]))"
    assert repr(fw.unpack_dual(x)) == (
        "UnpackedDualTensor(primal=tensor([1., 2.]), tangent=tensor([3., 4.]))"
    )
    y = fw.make_dual(lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True))
    assert repr(y) == (
        "tensor([1., 1.], grad_fn=<ViewBackward0>,\n"
        "       tangent=tensor([1., 1.], requires_grad=True))"
    )


def test_reverse_over_forward(fw: Any, lib: Any, level: None) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    v = lib.tensor([3.0, 4.0], requires_grad=True)
    primal, along = fw.unpack_dual(fw.make_dual(x, v) ** 3)
    assert along.tolist() == [9.0, 48.0]
    by_x, by_v = lib.autograd.grad(along.sum(), (x, v))
    assert by_x.tolist() == [18.0, 48.0]
    assert by_v.tolist() == [3.0, 12.0]
    assert (tangent(fw, by_x), tangent(fw, by_v)) == (None, None)
    (by_primal,) = lib.autograd.grad(primal.sum(), x)
    assert by_primal.tolist() == [3.0, 12.0]


@pytest.mark.parametrize("name", ["sin", "sin_"])
def test_gradients_of_tangents_are_no_dual_tensors(
    fw: Any, lib: Any, level: None, name: str
) -> None:
    x = lib.tensor([0.5, 2.0], requires_grad=True)
    y = getattr(fw.make_dual(x, lib.ones(2)) * 1, name)()
    (grad,) = lib.autograd.grad(fw.unpack_dual(y).tangent.sum(), x)
    assert tangent(fw, grad) is None
    assert grad.tolist() == pytest.approx((-x.sin()).tolist())


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt"])
def test_forward_over_reverse_of_saved_results(fw: Any, lib: Any, level: None, name: str) -> None:
    """Their gradients use the result, which has no tangent yet when it is saved."""
    x = lib.tensor([0.5, 2.0], dtype=lib.float64, requires_grad=True)
    v = lib.tensor([3.0, 4.0], dtype=lib.float64)
    made = fw.make_dual(x, v)
    (grad,) = lib.autograd.grad(getattr(made, name)().sum(), made)
    (first,) = lib.autograd.grad(getattr(x, name)().sum(), x, create_graph=True)
    (expected,) = lib.autograd.grad(first, x, v)
    assert tangent(fw, grad) == pytest.approx(expected.tolist())


def test_forward_over_reverse_in_place(fw: Any, lib: Any, level: None) -> None:
    x = lib.tensor([0.5, 2.0], requires_grad=True)
    made = fw.make_dual(x, lib.ones(2))
    y = (made * 1).exp_()
    y = y.clone().mul_(made)
    (grad,) = lib.autograd.grad(y.sum(), x)
    expected = (x * x.exp() + 2 * x.exp()).tolist()
    assert tangent(fw, grad) == pytest.approx(expected)


@pytest.mark.strided
def test_saved_tensors_with_hooks_keep_their_tangents(fw: Any, lib: Any, level: None) -> None:
    x = lib.tensor([0.5, 2.0], requires_grad=True)
    made = fw.make_dual(x, lib.ones(2))
    with lib.autograd.graph.saved_tensors_hooks(
        lambda t: t.detach().numpy(), lambda a: lib.from_numpy(a)
    ):
        loss = (made.exp() * made).sum()
    (grad,) = lib.autograd.grad(loss, x)
    assert tangent(fw, grad) == pytest.approx(((2 + x) * x.exp()).tolist())


def test_gradients_that_meet_add_their_tangents(fw: Any, lib: Any, level: None) -> None:
    x = lib.tensor([0.5, 2.0], requires_grad=True)
    made = fw.make_dual(x, lib.ones(2))
    (grad,) = lib.autograd.grad((made**2).sum() + (made**3).sum() + (made * 5).sum(), made)
    assert tangent(fw, grad) == pytest.approx((2 + 6 * x).tolist())


def test_an_accumulated_gradient_has_no_tangent(fw: Any, lib: Any, level: None) -> None:
    x = lib.tensor([0.5, 2.0], requires_grad=True)
    (fw.make_dual(x, lib.ones(2)) ** 2).sum().backward()
    assert tangent(fw, x.grad) is None
    assert x.grad.tolist() == [1.0, 4.0]


def test_leaves_may_be_written_to_without_grad(fw: Any, lib: Any, level: None) -> None:
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^a leaf Variable that requires grad is being used in"):
        x.mul_(dual(lib, fw))
    assert tangent(fw, x) is None
    with lib.no_grad():
        x.mul_(dual(lib, fw))
    assert tangent(fw, x) == [3.0, 4.0]


def test_a_level_keeps_no_tensor_alive(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw)
    y = x * 2
    references = [weakref.ref(y), weakref.ref(fw.unpack_dual(y).tangent)]
    del y
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_the_end_of_a_level_frees_tangents(fw: Any, lib: Any) -> None:
    with fw.dual_level():
        y = dual(lib, fw) * 2
        reference = weakref.ref(fw.unpack_dual(y).tangent)
    gc.collect()
    assert reference() is None
    assert y.tolist() == [2.0, 4.0]


def test_vmap_over_tangents(fw: Any, lib: Any) -> None:
    """One tangent for every element of a batch; the primal is the same for all."""
    x = lib.tensor([1.0, 2.0])

    def product(along: Any) -> Any:
        with fw.dual_level():
            primal, found = fw.unpack_dual(fw.make_dual(x, along) ** 3)
            assert tangent(fw, primal) is None
            return found

    batch = lib.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    vmap = importlib.import_module(f"{lib.__name__}.func").vmap
    if lib.__name__ == "torch":
        with pytest.raises(RuntimeError):  # it has no batching rule for make_dual
            vmap(product)(batch)
        return
    assert vmap(product)(batch).tolist() == [[3.0, 0.0], [0.0, 12.0], [6.0, 12.0]]


def test_reverse_transforms_of_dual_tensors(fw: Any, lib: Any, level: None) -> None:
    """`func.grad` of a dual tensor is a dual tensor."""
    grad = importlib.import_module(f"{lib.__name__}.func").grad
    found = grad(lambda x: (x**3).sum())(dual(lib, fw))
    assert found.tolist() == [3.0, 12.0]
    assert tangent(fw, found) == [18.0, 48.0]


def test_threads_share_the_level(fw: Any, lib: Any, level: None) -> None:
    import threading

    x = dual(lib, fw)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(tangent(fw, x * 2)))
    thread.start()
    thread.join()
    assert found == [[6.0, 8.0]]


def test_aliased_arguments_in_place(fw: Any, lib: Any, level: None) -> None:
    x = dual(lib, fw) * 1
    x.mul_(x)
    # PyTorch takes the factor after it was written to, which is no derivative of x * x.
    assert (tangent(fw, x) == [6.0, 16.0]) is (lib.__name__ != "torch")
