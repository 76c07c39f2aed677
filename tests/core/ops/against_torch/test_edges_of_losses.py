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
