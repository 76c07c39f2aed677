"""`x.conj()` is a view with a bit, as in PyTorch: what it shares, and what keeps the bit.

The oracle is PyTorch: each function below runs with either library and must come to the same.
"""

from __future__ import annotations

import copy
import io
import pickle
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing import gradcheck, gradgradcheck

BACKENDS = ("cpu", "jax")


def numbers(lib: Any) -> Any:
    return lib.tensor([[1 + 2j, 3 - 4j, 5j], [-1 + 1j, 2, 0.5 - 0.25j]], dtype=lib.complex128)


def about(lib: Any, value: Any) -> Any:
    """Values and bits of a result, for comparison."""
    if isinstance(value, lib.Tensor):
        name = str(value.dtype).rpartition(".")[2]
        return name, tuple(value.shape), value.tolist(), value.is_conj(), value.is_neg()
    if isinstance(value, (list, tuple)):
        return [about(lib, item) for item in value]
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.tolist()
    return value.replace("torch.", "").replace("plugrad.", "") if isinstance(value, str) else value


def outcome(lib: Any, function: Callable[..., Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return about(lib, function(lib, numbers(lib)))
        except Exception as error:
            return type(error).__name__, str(error).replace("torch.", "").replace("plugrad.", "")


def saved(lib: Any, x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


def written(lib: Any, x: Any, write: Callable[[Any], Any]) -> Any:
    """What a write through a view makes of the view, and of the memory behind."""
    view = x[:, 1:].conj()
    write(view)
    return view, x


def into(lib: Any, x: Any) -> Any:
    place = lib.zeros(2, 3, dtype=lib.complex128)
    out = place.conj()
    return lib.mul(x, x, out=out) is out, out, place


def set_data(lib: Any, x: Any) -> Any:
    y = lib.zeros(2, 3, dtype=lib.complex128)
    y.data = x.conj()
    return y, y * 2


def shared(lib: Any, x: Any) -> Any:
    view = x.conj()
    return (
        view._is_view(),
        view._base is x,
        view.data_ptr() == x.data_ptr(),
        view.imag.data_ptr() - x.data_ptr(),
        view.stride(),
        view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
    )


API: dict[str, Callable[[Any, Any], Any]] = {
    "conj": lambda lib, x: x.conj(),
    "conj of a conj": lambda lib, x: (x.conj().conj(), x.conj().conj().imag),
    "conj of reals is itself": lambda lib, x: (lambda r: r.conj() is r)(x.real),
    "memory": shared,
    "functions": lambda lib, x: (
        lib.is_conj(lib.conj(x)),
        lib.is_neg(x.conj().imag),
        lib.resolve_conj(x.conj()),
        lib.resolve_neg(x.conj().imag),
    ),
    "resolved are themselves": lambda lib, x: (
        x.resolve_conj() is x,
        x.resolve_neg() is x,
        (lambda c: c.resolve_neg() is c)(x.conj()),
    ),
    "parts": lambda lib, x: (x.conj().real, x.conj().imag, x.conj().imag.neg(), -x.conj()),
    "neg view": lambda lib, x: (
        x._neg_view(),
        x._neg_view().real,
        x._neg_view().imag,
        x._neg_view().conj(),
        x._neg_view().conj().imag,
        lib._neg_view(x.real)._neg_view(),
    ),
    "neg view as real": lambda lib, x: lib.view_as_real(x._neg_view()),
    "neg view as complex": lambda lib, x: lib.view_as_complex(lib.view_as_real(x)._neg_view()),
    "conj view as real": lambda lib, x: lib.view_as_real(x.conj()),
    "physical": lambda lib, x: (x.conj_physical(), x.conj().conj_physical()),
    "physical in place": lambda lib, x: (lambda c: (c.conj_physical_(), x))(x.conj()),
    "views": lambda lib, x: [
        x.conj().view(3, 2), x.conj().t(), x.conj()[0], x.conj()[:, ::2], x.conj().detach(),
        x.conj().data, x.conj().expand(2, 2, 3), x.conj().unsqueeze(0).squeeze(0),
        x.conj().as_strided((2,), (2,), 1), x.conj().diagonal(), x.conj().reshape(6),
        x.conj().flatten(), x.conj().movedim(0, 1), x.conj().narrow(1, 0, 2),
        x.conj().unfold(1, 2, 1), x.conj().mT, x.conj().permute(1, 0), x.conj().real,
        x.conj().contiguous(), x.conj().to(lib.complex128), x.conj().cpu(), x.conj().view_as(x),
    ],
    "several views": lambda lib, x: [
        x.conj().chunk(2), x.conj().split(2, 1), x.conj().unbind(), x.conj().tensor_split(2, 1),
        list(x.conj().imag),
    ],
    "adjoints": lambda lib, x: (x.mH, x.H, x.adjoint(), x.mH.mH, x.conj().mH),
    "results": lambda lib, x: [
        x.conj() * 2, x.conj() + x.conj(), x.conj().clone(), x.conj().exp(), x.conj().sum(0),
        lib.cat([x.conj(), x]), lib.stack([x.conj(), x]), x.conj()[[0, 1]], x.conj().diag(),
        x @ x.mH, x.conj().t().contiguous(), x.conj().t().reshape(6),
        x.conj().index_select(0, lib.tensor([1])),
        x.conj().to(lib.complex64), x.conj().to(lib.complex128, copy=True), lib.vdot(x[0], x[1]),
        lib.where(x.real > 0, x.conj(), x), lib.zeros_like(x.conj()), lib.ones_like(x.conj()),
        x.conj().imag.clone(), x.conj().imag * 2, x.conj().imag.sum(), x.conj().abs(),
    ],
    "empty": lambda lib, x: (lib.empty_like(x.conj()).is_conj(), x.conj().new_empty(2).is_conj()),
    "copied": lambda lib, x: (
        copy.copy(x.conj()), copy.deepcopy(x.conj()), copy.deepcopy(x.conj().imag)
    ),
    "pickled": lambda lib, x: (saved(lib, x.conj()), saved(lib, x.conj()[1:].t().imag)),
    "parameter": lambda lib, x: lib.nn.Parameter(x.conj()).detach(),
    "tensor": lambda lib, x: (lib.tensor(x.conj()), lib.as_tensor(x.conj())),
    "tensor of elements": lambda lib, x: lib.tensor([x.conj()[0, 0], x[0, 1]]),
    "numpy": lambda lib, x: x.conj().numpy(),
    "numpy of a neg view": lambda lib, x: x.conj().imag.numpy(),
    "array": lambda lib, x: np.asarray(x.conj()),
    "forced": lambda lib, x: (x.conj().numpy(force=True), x.conj().imag.numpy(force=True)),
    "dlpack": lambda lib, x: x.conj().__dlpack__(),
    "numbers": lambda lib, x: (
        x.conj()[0, 0].item(),
        complex(x.conj()[0, 1]),
        float(x.conj().imag[0, 1]),
        bool(x.conj()[0, 1]),
        x.conj().imag.tolist(),
    ),
    "text": lambda lib, x: (repr(x.conj()), repr(x.conj().imag), f"{x.conj()[0, 0].imag:.2f}"),
    "equal": lambda lib, x: (lib.equal(x.conj(), x.conj_physical()), lib.equal(x.conj(), x)),
    "allclose": lambda lib, x: lib.allclose(x.conj().imag, -x.imag),
    "data": set_data,
    "out": into,
    "resized": lambda lib, x: (x.conj().clone().conj().resize_(2), x.clone().conj().resize_(9)[:6]),
    "set": lambda lib, x: lib.zeros(2, 3, dtype=lib.complex128).set_(x.conj()),
    "transposed in place": lambda lib, x: (lambda c: (c.t_(), c.unsqueeze_(0), x))(x.conj()),
    "vmap": lambda lib, x: lib.vmap(lambda a: a.conj())(x),
    "vmap over one": lambda lib, x: lib.vmap(lambda a: lib.zeros(()) + a.is_conj())(x.conj()),
    "functionalize": lambda lib, x: lib.func.functionalize(
        lambda a: (
            lambda b: (
                b.conj()[0].mul_(2j), b.conj().imag.as_strided((2,), (4,), 1).add_(1), b
            )[2]
        )(a * 1)
    )(x),
    "grad": lambda lib, x: lib.func.grad(lambda a: (a.conj() * x.conj()).imag.sum())(x),
    "grad within": lambda lib, x: lib.func.grad(
        lambda a: (a * 1).conj().mul_(a).real.sum()
    )(x.conj()),
    "fill": lambda lib, x: written(lib, x, lambda v: v.fill_(1 + 2j)),
    "zero": lambda lib, x: written(lib, x, lambda v: v.zero_()),
    "copy": lambda lib, x: written(lib, x, lambda v: v.copy_(x[:, :2].clone())),
    "copy of a conj": lambda lib, x: written(lib, x, lambda v: v.copy_(x[:, :2].clone().conj())),
    "copy of reals": lambda lib, x: written(lib, x, lambda v: v.copy_(lib.ones(2))),
    "copy into a neg view": lambda lib, x: written(
        lib, x, lambda v: v.imag.copy_(lib.tensor([1, 2]))
    ),
    "add itself": lambda lib, x: written(lib, x, lambda v: v.add_(x[:, 1:])),
    "add the other way": lambda lib, x: written(lib, x, lambda v: x.add_(x.conj())),
    "index": lambda lib, x: written(lib, x, lambda v: v.__setitem__(0, 3j)),
    "index by a mask": lambda lib, x: written(lib, x, lambda v: v.__setitem__(v.real > 0, 3j)),
    "imag of the view": lambda lib, x: written(lib, x, lambda v: v.imag.add_(3)),
    "real of the view": lambda lib, x: written(lib, x, lambda v: v.real.mul_(3)),
    "masked": lambda lib, x: written(lib, x, lambda v: v.masked_fill_(v.imag < 0, 1j)),
}  # fmt: skip


@pytest.mark.parametrize("name", API)
def test_a_lazy_conjugate_behaves_as_in_pytorch(torch_oracle: ModuleType, name: str) -> None:
    assert outcome(plugrad, API[name]) == outcome(torch_oracle, API[name])


def test_a_negative_view_is_not_exported() -> None:
    # PyTorch hands out its memory as if it were not negated.
    with pytest.raises(BufferError, match="Can't export tensors with the negative bit set"):
        numbers(plugrad).conj().imag.__dlpack__()


def test_bools_have_no_negative_view() -> None:
    # PyTorch makes one, and raises when it is read.
    with pytest.raises(RuntimeError, match="Negation, the `-` operator, on a bool tensor"):
        plugrad.ones(2, dtype=plugrad.bool)._neg_view()


def test_a_saved_file_has_the_elements(tmp_path: Any) -> None:
    nn = pytest.importorskip("plugrad_nn")
    del nn
    x = numbers(plugrad)
    file = io.BytesIO()
    plugrad.save({"c": x.conj(), "n": x.conj().imag}, file)
    file.seek(0)
    loaded = plugrad.load(file)
    assert plugrad.equal(loaded["c"], x.conj())
    assert plugrad.equal(loaded["n"], -x.imag)


NODES: dict[str, Callable[[Any], Any]] = {
    "ConjBackward0": lambda x: x.conj(),
    "NegViewBackward0": lambda x: x._neg_view(),
    "ConjPhysicalBackward0": lambda x: x.conj_physical(),
    "CloneBackward0": lambda x: x.conj().resolve_conj(),
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_are_called_as_in_pytorch(torch_oracle: ModuleType, name: str) -> None:
    for lib in (plugrad, torch_oracle):
        x = numbers(lib).requires_grad_()
        assert type(NODES[name](x).grad_fn).__name__ == name
        assert type(x.mH.grad_fn).__name__ == "ConjBackward0"


def torch_or_plugrad(x: Any) -> Any:
    """The library that a tensor is one of."""
    return plugrad if isinstance(x, plugrad.Tensor) else sys.modules["torch"]


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "conj": lambda x: x.conj() * x,
    "parts": lambda x: x.conj().imag * x.real + x.conj().real.exp(),
    "neg view": lambda x: x._neg_view() * x._neg_view().imag,
    "adjoint": lambda x: x @ x.mH @ x,
    "write": lambda x: (lambda y: (y[:, 1:].conj().mul_(x[:, :2]), y)[1])(x * 1),
    "write to the imaginary part": lambda x: (
        lambda y: (y.conj().imag.mul_(x.real), y.conj()[0].mul_(1j), y * y)[2]
    )(x * 1),
    "copy": lambda x: (lambda y: (y.conj()[1].copy_(x[0]), y * x)[1])(x * 1),
    "two views": lambda x: (
        lambda y: (lambda c, d: (c.mul_(x[1]), c + d * y)[1])(y.conj(), y[0].conj())
    )(x * 1),
    "a written view's view": lambda x: (
        lambda y: (lambda c: (y.mul_(x), c.imag.exp() + c.real)[1])(y.conj().t())
    )(x * 1),
    "gradients that are lazy themselves": lambda x: (
        lambda r: r.view_as_complex(r.view_as_real(x * 1)).conj()
    )(torch_or_plugrad(x)),
    "resolved": lambda x: x.conj().resolve_conj() * x.conj().imag.resolve_neg(),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_lazy_conjugates_are_pytorchs_and_those_of_finite_differences(
    torch_oracle: ModuleType, name: str
) -> None:
    function = GRADIENTS[name]
    found = []
    for lib in (torch_oracle, plugrad):
        x = numbers(lib).requires_grad_()
        result = function(x)
        weights = lib.full_like(result, 2 - 1j if result.is_complex() else 2)
        found.append(lib.autograd.grad(result, x, weights)[0].tolist())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-12)
    x = numbers(plugrad).requires_grad_()
    assert gradcheck(function, x, check_forward_ad=True)
    assert gradgradcheck(function, x)


def test_gradients_reach_what_a_lazy_leaf_shares(torch_oracle: ModuleType) -> None:
    """A leaf may be a conjugate view itself, and gradients may arrive as such."""
    found = []
    for lib in (torch_oracle, plugrad):
        leaf = numbers(lib).conj().requires_grad_()
        for _ in range(2):
            (leaf.conj() * (2 + 1j)).sum().abs().backward()
        part = leaf.grad.clone()
        leaf.grad = leaf.detach().conj()
        (leaf * leaf).imag.sum().backward()
        found.append([part.tolist(), leaf.grad.tolist(), leaf.is_conj()])
    assert np.allclose(found[0][0], found[1][0])
    assert found[0][1:] == found[1][1:]
    assert gradcheck(lambda x: x * x.conj(), numbers(plugrad).conj().requires_grad_())


def test_several_lazy_gradients_add_up() -> None:
    """What is added up in place must not be taken for the memory's elements. Closed form."""
    x = numbers(plugrad).requires_grad_()
    y = x * 1
    for turn in range(4):
        (y.conj() * (turn + 1j)).real.sum().backward(retain_graph=True)
        ((y.conj() * 1j) + y + y.conj()).imag.sum().backward(retain_graph=True)
    # Re(conj(y) a) has the gradient a; Im(i conj(y)) is Re(y), with 1; Im(y + conj(y)) is 0.
    assert plugrad.allclose(x.grad, plugrad.full((2, 3), 6 + 4j + 4, dtype=plugrad.complex128))


def test_tangents_follow_the_bits(torch_oracle: ModuleType) -> None:
    found = []
    for lib in (torch_oracle, plugrad):
        dual = lib.autograd.forward_ad
        x = numbers(lib)
        with dual.dual_level():
            values = []
            for primal, tangent in (
                (x.conj(), x + 1),
                (x, (x + 1).conj()),
                (x.conj(), (x * 2).conj()),
                (x.conj().imag, x.real),
                (x.real, x.conj().imag),
                (x._neg_view(), x.conj()),
            ):
                made = dual.make_dual(primal, tangent)
                results = [made * made, made.conj() * 2, made.conj(), made.conj().real, made[0]]
                if made.is_complex():
                    # Views that there are of memory without the bit only.
                    plain = made.conj() if made.is_conj() else made
                    results += [lib.view_as_real(plain), made.conj().imag]
                copied = made.clone()
                copied[:1].conj().mul_(2)
                pairs = [dual.unpack_dual(result) for result in (*results, copied)]
                values.append([(pair.primal.tolist(), pair.tangent.tolist()) for pair in pairs])
        found.append(values)
    assert found[0] == found[1]


def test_bits_are_dispatch_keys() -> None:
    from plugrad.dispatch import dispatch_keys

    c = numbers(plugrad).conj()
    names = "DispatchKeySet(AutogradCPU, ADInplaceOrView, Conjugate, CPU)"
    assert repr(dispatch_keys(c)) == names
    assert repr(dispatch_keys(c.imag)) == names.replace("Conjugate", "Negative")
    with plugrad.record_dispatch_trace() as events:
        c.exp()
    assert [(event.op, event.key) for event in events] == [
        ("plugrad::exp", "AutogradCPU"),
        ("plugrad::exp", "Conjugate"),
        ("plugrad::conj_physical", "CPU"),
        ("plugrad::exp", "CPU"),
    ]


def test_views_have_their_bits_in_inference_mode_and_below_autograd() -> None:
    with plugrad.inference_mode():
        x = numbers(plugrad)
        view = x[0].conj()
        assert (view.is_conj(), view[1:].imag.is_neg(), view.resolve_conj().is_conj()) == (
            True,
            True,
            False,
        )
        view.mul_(1j)
        assert x[0].tolist() == [(2 - 1j), (-4 - 3j), (5 + 0j)]
    with plugrad.library.Library("lazily", "DEF") as library:
        library.define("adjoint_of(Tensor self) -> Tensor")
        library.impl("adjoint_of", lambda x: (x.mH.t() * 1).clone(), "CompositeExplicitAutograd")
        assert plugrad.equal(plugrad.ops.lazily.adjoint_of(x.conj()), x)


def test_kernels_from_elsewhere_get_arrays_that_are_resolved() -> None:
    with plugrad.library.Library("elsewhere", "DEF") as library:
        library.define("imag_sum(Tensor[] parts, *, Tensor? other=None) -> Tensor")
        library.impl(
            "imag_sum",
            lambda parts, other: np.asarray(sum(part.imag.sum() for part in (*parts, other))),
            "CPU",
        )
        x = numbers(plugrad)
        found = plugrad.ops.elsewhere.imag_sum([x, x.conj()], other=x.conj())
        assert found.item() == -x.imag.sum().item()


def test_an_operator_writes_to_lists_of_lazy_views() -> None:
    @plugrad.library.custom_op("lists::double_all", mutates_args=("parts",))
    def double_all(parts: list[plugrad.Tensor]) -> None:
        for part in parts:
            part.mul_(2j)

    x = numbers(plugrad)
    expected = (x.conj() * 2j).conj_physical()
    with plugrad.no_grad():
        double_all([x[0].conj(), x[1].conj()])
    assert plugrad.equal(x, expected)


@pytest.mark.parametrize("device", BACKENDS)
def test_a_captured_graph_keeps_the_bits(device: str) -> None:
    if device == "jax":
        pytest.importorskip("plugrad_jax")

    def step(x: Any) -> Any:
        y = x * 1
        c = y.conj()
        c.imag.add_(1)
        return c * y, c

    x = numbers(plugrad).to(device)
    graph = plugrad.capture(step, x)
    for given in (x, x + 1, (x + 2j).conj()):
        for found, expected in zip(graph(given), step(given), strict=True):
            assert plugrad.equal(found, expected)
    assert graph(x)[1].is_conj()


def test_a_compiled_step_is_traced_anew_for_a_lazy_argument() -> None:
    pytest.importorskip("plugrad_jax")
    x = numbers(plugrad).to("jax")
    step = plugrad.compile(lambda a: (a * 1j, a.conj(), a.conj().imag.add(1)))
    for _ in range(2):
        for given in (x, x.conj(), x.conj().t()):
            for found, expected in zip(
                step(given), (given * 1j, given.conj(), given.conj().imag + 1), strict=True
            ):
                assert plugrad.allclose(found, expected)
