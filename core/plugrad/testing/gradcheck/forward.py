"""gradcheck's tests of forward mode: tangents against finite differences, missing tangents, and
batches of tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plugrad
import plugrad.autograd.forward_ad as fwAD
from plugrad.overrides import is_tensor_like
from plugrad.testing.gradcheck.jacobians import Array, GradcheckError, as_tuple, flat
from plugrad.testing.gradcheck.jacobians import difference_along as difference
from plugrad.testing.host_values import from_host, to_host

Function = Callable[..., Any]

BATCHED = (
    "gradcheck failed while testing batched gradient computation with forward-mode AD: the "
    "function mapped over tangents by plugrad.vmap must give what it gives for each of them. Pass "
    "check_batched_forward_grad=False if the function cannot be mapped."
)


class ForwardCheck:
    """The forward mode of one function at one point.

    Args:
        func: the function.
        arguments: its arguments; those that require grad get tangents.
        close: says whether two arrays agree, within an absolute tolerance.
        shown: formats an array for a message.
    """

    def __init__(
        self,
        func: Function,
        arguments: Sequence[Any],
        eps: float,
        atol: float,
        check_grad_dtypes: bool,
        close: Callable[[Array, Array, float], bool],
        shown: Callable[[Array], str],
    ) -> None:
        self.func = func
        self.arguments = arguments
        self.eps = eps
        self.atol = atol
        self.check_grad_dtypes = check_grad_dtypes
        self.close = close
        self.shown = shown
        self.places = [
            place
            for place, value in enumerate(arguments)
            if is_tensor_like(value) and value.requires_grad
        ]

    def element_by_element(self) -> None:
        """Compare the columns of all Jacobians: of a complex input, part by part."""
        for index, place in enumerate(self.places):
            tensor = self.arguments[place]
            shape = tuple(tensor.shape)
            units = [np.eye(1, tensor.numel(), k).reshape(shape) for k in range(tensor.numel())]
            for part, factor in _parts(tensor):
                columns = [self._both(place, unit * factor) for unit in units]
                for output in range(len(columns[0]) if columns else 0):
                    numerical, analytical = (
                        np.array([column[output][side] for column in columns]) for side in (0, 1)
                    )
                    if not self.close(analytical, numerical, self.atol):
                        raise GradcheckError(
                            self._mismatch(part, output, index, numerical, analytical)
                        )

    def along_random_directions(self) -> None:
        """Compare the product with a random unit vector, along another one."""
        rng = np.random.default_rng(0)
        for index, place in enumerate(self.places):
            tensor = self.arguments[place]
            for part, factor in _parts(tensor):
                direction = _unit_vector(tensor.numel(), rng).reshape(tuple(tensor.shape))
                for output, both in enumerate(self._both(place, direction * factor)):
                    weights = _unit_vector(both[0].size, rng)
                    numerical, analytical = (np.asarray((side * weights).sum()) for side in both)
                    atol = self.atol * float(direction.sum()) * float(weights.sum())
                    if not self.close(analytical, numerical, atol):
                        raise GradcheckError(
                            self._mismatch(part, output, index, numerical, analytical)
                        )

    def undefined(self) -> None:
        """An input without a tangent must be equivalent to one with a zero tangent."""
        rng = np.random.default_rng(0)
        along = {place: _random(self.arguments[place], rng) for place in self.places}
        for place in self.places:
            zeros = {**along, place: np.zeros(tuple(self.arguments[place].shape))}
            without = {other: value for other, value in along.items() if other != place}
            pairs = zip(self._tangents(zeros), self._tangents(without), strict=True)
            for output, (expected, found) in enumerate(pairs):
                if not np.allclose(expected, found):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {output} when input: "
                        f"{self.arguments[place]} has an undefined tangent value.  Got: {found} "
                        f"but expected: {expected}"
                    )

    def batched(self) -> None:
        """Tangents that are mapped over must give what each of them gives."""
        rng = np.random.default_rng(0)
        for index, place in enumerate(self.places):
            tensor = self.arguments[place]
            tangents = [from_host(_random(tensor, rng), tensor) for _ in range(2)]
            primals = self._primals()

            def product(
                tangent: Any, place: int = place, primals: Sequence[Any] = primals
            ) -> tuple[Any, ...]:
                with fwAD.dual_level():
                    outputs = self._call({place: tangent}, primals)
                    unpacked = [fwAD.unpack_dual(output) for output in outputs]
                    return tuple(
                        plugrad.zeros_like(primal) if found is None else found.detach()
                        for primal, found in unpacked
                    )

            one_by_one = [product(tangent) for tangent in tangents]
            try:
                together = plugrad.vmap(product)(plugrad.stack(tangents))
            except RuntimeError as error:
                raise GradcheckError(
                    f"While computing batched gradients, got: {error}\n\n{BATCHED}"
                ) from error
            for output, found in enumerate(together):
                expected = np.stack([to_host(products[output]) for products in one_by_one])
                got = to_host(found)
                if got.shape != expected.shape or not np.allclose(got, expected):
                    raise GradcheckError(
                        f"For output {output} and input {index}:\n\n{BATCHED}\n\n"
                        f"Got:\n{got}\n\nExpected:\n{expected}"
                    )

    def _both(self, place: int, direction: Array) -> list[tuple[Array, Array]]:
        """The change of each output along a direction: by differences, and by forward mode."""
        target = self.arguments[place]
        changes = difference(self.func, self.arguments, target, direction, self.eps)
        results = [out for out in as_tuple(self.func(*self.arguments)) if is_tensor_like(out)]
        numerical = [
            change for change, out in zip(changes, results, strict=True) if _can_have_tangent(out)
        ]
        zeros = {other: np.zeros(tuple(self.arguments[other].shape)) for other in self.places}
        return list(zip(numerical, self._tangents({**zeros, place: direction}), strict=True))

    def _tangents(self, directions: dict[int, Array]) -> list[Array]:
        """The tangents of the outputs, as vectors."""
        found: list[Array] = []
        with fwAD.dual_level():
            given = {
                place: from_host(values, self.arguments[place])
                for place, values in directions.items()
            }
            for output in self._call(given):
                primal, tangent = fwAD.unpack_dual(output)
                if tangent is None:
                    found.append(np.zeros(primal.numel()))
                    continue
                if self.check_grad_dtypes and primal.is_complex() != tangent.is_complex():
                    raise GradcheckError("Forward AD gradient has dtype mismatch.")
                found.append(flat(tangent.detach()))
        return found

    def _call(self, tangents: dict[int, Any], primals: Sequence[Any] | None = None) -> list[Any]:
        """The outputs that may have tangents, of inputs that have some of these."""
        arguments = list(self._primals() if primals is None else primals)
        for place, tangent in tangents.items():
            arguments[place] = fwAD.make_dual(arguments[place], tangent)
        outputs = as_tuple(self.func(*arguments))
        return [out for out in outputs if _can_have_tangent(out)]

    def _primals(self) -> list[Any]:
        """The arguments again, as new leaves; they require grad, because the function may compute
        gradients."""
        return [
            value.detach().requires_grad_() if place in self.places else value
            for place, value in enumerate(self.arguments)
        ]

    def _mismatch(
        self, part: str, output: int, index: int, numerical: Array, analytical: Array
    ) -> str:
        prefix = f"While considering the {part} part of complex inputs only, " if part else ""
        return (
            f"{prefix}Jacobian computed with forward mode mismatch for output {output} with "
            f"respect to input {index},\nnumerical:{self.shown(numerical)}\n"
            f"analytical:{self.shown(analytical)}\n"
        )


def _parts(tensor: Any) -> list[tuple[str, Any]]:
    """The directions that an element can change in, and what messages call them."""
    return [("imaginary", 1j), ("real", 1.0)] if tensor.dtype.is_complex else [("", 1.0)]


def _can_have_tangent(output: Any) -> bool:
    return is_tensor_like(output) and bool(output.dtype.is_differentiable)


def _unit_vector(size: int, rng: np.random.Generator) -> Array:
    vector = rng.random(size)
    return vector / (float(np.linalg.norm(vector)) or 1.0)


def _random(tensor: Any, rng: np.random.Generator) -> Array:
    values: Array = rng.uniform(-1.0, 1.0, tuple(tensor.shape))
    if tensor.dtype.is_complex:
        values = values + 1j * rng.uniform(-1.0, 1.0, tuple(tensor.shape))
    return values
