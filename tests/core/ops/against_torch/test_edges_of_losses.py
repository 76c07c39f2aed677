"""Losses at infinities and kinks, and their dtypes, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import plugrad
from tests.core.ops.against_torch.edges import INF, NAN, check, gradients
from tests.core.ops.against_torch.oracle import dtype_name


def loss_at_edges(name: str, dtype: str) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        given = lib.tensor([INF, -INF, NAN, 1.0, 0.5, 3.0], dtype=getattr(lib, dtype))
        return gradients(getattr(lib.nn.functional, name), given, lib.zeros_like(given))

    return program


def divergence(lib: Any) -> Any:
    """Of targets that are 0, negative and infinite: the logarithm has no slope at 0."""
    given = lib.tensor([-1.0, -INF, 0.5, 2.0, -1.0, 1.0])
    target = lib.tensor([0.0, 0.0, 0.5, 1.0, -1.0, INF])
    return gradients(lambda a, b: lib.nn.functional.kl_div(a, b, reduction="none"), given, target)


def cross_entropy_of(target: float) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        targets = lib.tensor([0.5, target])
        return lib.nn.functional.binary_cross_entropy(lib.tensor([0.5, 0.25]), targets)

    return program


PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    **{
        f"{name} at edges in {dtype}": loss_at_edges(name, dtype)
        for name in ("huber_loss", "smooth_l1_loss", "mse_loss", "l1_loss")
        for dtype in ("float16", "float32")
    },
    "kl_div at edges": divergence,
    **{f"cross entropy of {t}": cross_entropy_of(t) for t in (1.0, 1.5, -0.1, NAN)},
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_at_edges_are_those_of_pytorch(torch_oracle: Any, name: str) -> None:
    check(torch_oracle, PROGRAMS[name])


LOSS_DTYPES: Final = ("float16", "bfloat16", "float32", "float64", "int64", "bool")


@pytest.mark.parametrize("dtype", LOSS_DTYPES)
@pytest.mark.parametrize(
    "name", ["huber_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"]
)
def test_dtypes_of_losses_are_those_of_pytorch(torch_oracle: Any, name: str, dtype: str) -> None:
    def dtypes(library: Any, other: str, more: str | None) -> list[str]:
        """Of the losses and of the gradient, as far as there are some."""
        found: list[str] = []
        x = library.ones(2).to(getattr(library, dtype))
        target = library.ones(2).to(getattr(library, other))
        options: dict[str, Any] = {"reduction": "none"}
        if more is not None:
            options["pos_weight"] = library.ones(2).to(getattr(library, more))
        try:
            if x.is_floating_point():
                x.requires_grad_()
            losses = getattr(library.nn.functional, name)(x, target, **options)
            found.append(dtype_name(losses))
            losses.sum().backward()
            found.append(dtype_name(x.grad))
        except RuntimeError:
            pass  # PyTorch's backward takes fewer dtypes
        return found

    weights = LOSS_DTYPES if name.startswith("binary") else ()
    for other in LOSS_DTYPES:
        for more in (None, *weights):
            expected, found = dtypes(torch_oracle, other, more), dtypes(plugrad, other, more)
            assert found[: len(expected) or None] == expected, (other, more)


def by_number(name: str, reduction: int) -> Callable[[Any], Any]:
    """A loss that is reduced as a number says, and its gradient."""

    def program(lib: Any) -> Any:
        native = lib if lib is plugrad else lib._C._nn
        x = lib.tensor([[0.5, -2.0, 0.3], [1.2, 0.4, 0.1]], requires_grad=True)
        if name == "nll_loss2d":
            labels = lib.tensor([[[0, 2, 1]], [[1, 0, 0]]])
            scores = x.reshape(2, 1, 1, 3) * lib.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
            loss = native.nll_loss2d(scores, labels, None, reduction)
        elif name == "multi_margin_loss":
            loss = native.multi_margin_loss(x, lib.tensor([0, 2]), 1, 1, None, reduction)
        else:
            labels = lib.tensor([[0, -1, -1], [1, 2, -1]])
            loss = native.multilabel_margin_loss(x, labels, reduction)
        return loss, lib.autograd.grad(loss.sum(), x)

    return program


@pytest.mark.parametrize("name", ["multi_margin_loss", "multilabel_margin_loss"])
def test_margins_of_what_is_no_number_do_not_count(torch_oracle: Any, name: str) -> None:
    def program(lib: Any) -> Any:
        native = lib if lib is plugrad else lib._C._nn
        x = lib.tensor([[0.1, NAN, 0.3, 0.2], [NAN] * 4, [0.1, INF, -INF, 0.2]], requires_grad=True)
        if name == "multi_margin_loss":
            loss = native.multi_margin_loss(x, lib.tensor([0, 1, 3]), 1, 1, None, 0)
        else:
            loss = native.multilabel_margin_loss(x, lib.tensor([[0, 3, -1, 1]] * 3), 0)
        return loss, lib.autograd.grad(loss.sum(), x)

    check(torch_oracle, program)


@pytest.mark.parametrize("reduction", [0, 1, 2, 3, -1])
@pytest.mark.parametrize("name", ["nll_loss2d", "multi_margin_loss", "multilabel_margin_loss"])
def test_numbers_of_reductions_are_those_of_pytorch(
    torch_oracle: Any, name: str, reduction: int
) -> None:
    check(torch_oracle, by_number(name, reduction))


@pytest.mark.parametrize("integers", ["int64", "bool"])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_floats_and_integers_are_those_of_pytorch(
    torch_oracle: Any, name: str, integers: str
) -> None:
    """Either may come first."""

    def program(lib: Any) -> Any:
        function = getattr(lib.nn.functional, name)
        whole = lib.tensor([1, 0, 1]).to(getattr(lib, integers))
        x = lib.tensor([0.25, -0.5, 3.0], requires_grad=True)
        given = [(x, whole)] if name == "soft_margin_loss" else [(x, whole), (whole, x)]
        losses = [function(a, b) for a, b in given]
        return losses, [lib.autograd.grad(loss, x) for loss in losses]

    check(torch_oracle, program)


def test_soft_margin_loss_takes_a_mask_as_targets(torch_oracle: Any) -> None:
    def program(lib: Any) -> Any:
        x = lib.tensor([0.25, -0.5, 3.0])
        return lib.nn.functional.soft_margin_loss(x, lib.tensor([True, False, True]))

    check(torch_oracle, program)


@pytest.mark.parametrize("other", ["int64", "bool", "float16"])
def test_mse_loss_backward_has_the_common_dtype(torch_oracle: Any, other: str) -> None:
    def program(lib: Any) -> Any:
        backward = lib.mse_loss_backward if lib is plugrad else lib.ops.aten.mse_loss_backward
        x, y = lib.ones(3), lib.tensor([1, 0, 1]).to(getattr(lib, other))
        mean = "mean" if lib is plugrad else 1
        return backward(lib.tensor(1.0), x, y, mean)

    check(torch_oracle, program)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("shape", [(4, 0), (0, 0), (0, 3), (0, 0, 2, 2)])
def test_smoothing_divides_by_no_classes_as_pytorch(
    torch_oracle: Any, shape: tuple[int, ...], labels: bool, weighted: bool, reduction: str
) -> None:
    def program(lib: Any) -> Any:
        of_labels = {"size": (shape[0], *shape[2:]), "dtype": lib.int64}
        target = lib.zeros(**(of_labels if labels else {"size": shape}))
        weight = lib.ones(shape[1]) if weighted else None

        def loss(x: Any) -> Any:
            return lib.nn.functional.cross_entropy(
                x, target, weight, label_smoothing=0.3, reduction=reduction
            )

        return gradients(loss, lib.zeros(shape))

    check(torch_oracle, program)


@pytest.mark.parametrize("eps", [-1.5, -1e-20, NAN, 0.0])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_cosine_similarity_refuses_a_negative_eps(
    torch_oracle: Any, dtype: str, eps: float
) -> None:
    def program(lib: Any) -> Any:
        x = lib.ones(2, 3, dtype=getattr(lib, dtype))
        return lib.cosine_similarity(x, x + x, eps=eps)

    check(torch_oracle, program)
    check(torch_oracle, lambda lib: lib.nn.CosineSimilarity(eps=eps)(*[lib.ones(2, 3)] * 2))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (2, 0, 2, 2)])
def test_ignored_targets_need_no_classes(
    torch_oracle: Any, shape: tuple[int, ...], weighted: bool, reduction: str
) -> None:
    def program(lib: Any) -> Any:
        target = lib.full((*shape[:1], *shape[2:]) if len(shape) > 1 else (), -100)
        weight = lib.ones(0) if weighted else None

        def loss(x: Any) -> Any:
            return lib.nn.functional.nll_loss(x, target, weight, reduction=reduction)

        return gradients(loss, lib.zeros(shape))

    check(torch_oracle, program)
