"""assert_close: compares tensors, numbers and containers of them, and says where they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad.testing.host_values import is_tensor, to_host

Array = np.ndarray[Any, Any]

# Relative and absolute tolerance for each dtype; all others must be equal.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
NUMBERS = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that `actual` and `expected` are close: |a - e| <= atol + rtol * |e| everywhere.

    Compares tensors, NumPy arrays, numbers, None, and sequences and mappings of them.

    Args:
        actual: what was computed.
        expected: what it should be.
        allow_subclasses: False demands the same type on both sides.
        rtol: relative tolerance; by default it depends on the dtype, like `atol`.
        atol: absolute tolerance.
        equal_nan: True makes two NaNs close.
        check_device: whether tensors must be on the same device.
        check_dtype: whether they must have the same dtype.
        check_layout: takes no effect: every tensor is strided.
        check_stride: whether they must have the same strides.
        msg: replaces the message, or makes another one from it.

    Raises:
        AssertionError: they are not close, or differ in shape, dtype, length or keys.
        TypeError: there is no way to compare the two types.
        ValueError: only one of `rtol` and `atol` is given.

    >>> import plugrad
    >>> from plugrad.testing import assert_close
    >>> assert_close(plugrad.tensor([1.0, 2.0]), plugrad.tensor([1.0, 2.5]))
    Traceback (most recent call last):
    ...
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        )
    rules = _Rules(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    try:
        rules.compare(actual, expected, "")
    except _NotCloseError as difference:
        text = str(difference)
        if difference.item:
            text += f"\n\nThe failure occurred for item {difference.item}"
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        raise AssertionError(text) from None


class _NotCloseError(Exception):
    """The first difference, and the path to it such as ``[0]['weight']``."""

    def __init__(self, text: str, item: str) -> None:
        super().__init__(text)
        self.item = item


class _Rules:
    """What counts as close."""

    def __init__(
        self,
        allow_subclasses: bool,
        rtol: float | None,
        atol: float | None,
        equal_nan: bool,
        check_device: bool,
        check_dtype: bool,
        check_stride: bool,
    ) -> None:
        self.allow_subclasses = allow_subclasses
        self.rtol = rtol
        self.atol = atol
        self.equal_nan = equal_nan
        self.check_device = check_device
        self.check_dtype = check_dtype
        self.check_stride = check_stride

    def compare(self, actual: Any, expected: Any, item: str) -> None:
        """Compare two values of any supported type."""
        if self._both(actual, expected, Sequence) and not isinstance(actual, (str, bytes)):
            self._sequences(actual, expected, item)
        elif self._both(actual, expected, Mapping):
            self._mappings(actual, expected, item)
        elif actual is None or expected is None:
            if actual is not expected:
                raise _NotCloseError(f"None mismatch: {actual} is not {expected}", item)
        elif self._both(actual, expected, tuple(NUMBERS)):
            self._numbers(actual, expected, item)
        elif self._related(actual, expected) and _is_array(actual) and _is_array(expected):
            self._tensors(actual, expected, item)
        else:
            raise TypeError(
                f"No comparison pair was able to handle inputs of type {type(actual)} and "
                f"{type(expected)}."
            )

    @staticmethod
    def _both(actual: Any, expected: Any, kinds: Any) -> bool:
        return isinstance(actual, kinds) and isinstance(expected, kinds)

    def _related(self, actual: Any, expected: Any) -> bool:
        if not self.allow_subclasses:
            return type(actual) is type(expected)
        return isinstance(actual, type(expected)) or isinstance(expected, type(actual))

    def _sequences(self, actual: Any, expected: Any, item: str) -> None:
        if len(actual) != len(expected):
            raise _NotCloseError(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", item
            )
        for i, pair in enumerate(zip(actual, expected, strict=True)):
            self.compare(*pair, f"{item}[{i}]")

    def _mappings(self, actual: Any, expected: Any, item: str) -> None:
        if actual.keys() != expected.keys():
            raise _NotCloseError(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(expected.keys() - actual.keys())}\n"
                f"Additional keys in the actual mapping: {sorted(actual.keys() - expected.keys())}",
                item,
            )
        for key in actual:
            self.compare(actual[key], expected[key], f"{item}[{key!r}]")

    def _numbers(self, actual: Any, expected: Any, item: str) -> None:
        kinds = (type(actual), type(expected))
        if self.check_dtype and kinds[0] is not kinds[1]:
            raise _NotCloseError(f"The (d)types do not match: {kinds[0]} != {kinds[1]}.", item)
        rtol, atol = self._tolerance([NUMBERS.get(kind, "float64") for kind in kinds])
        self._values(np.asarray(actual), np.asarray(expected), rtol, atol, item)

    def _tensors(self, actual: Any, expected: Any, item: str) -> None:
        left, right = _as_tensor(actual), _as_tensor(expected)
        self._attribute("shape", left.shape, right.shape, item)
        if self.check_device:
            self._attribute("device", left.device, right.device, item)
        if self.check_dtype:
            self._attribute("dtype", left.dtype, right.dtype, item)
        if self.check_stride:
            self._attribute("stride()", left.stride(), right.stride(), item)
        rtol, atol = self._tolerance([left.dtype.name, right.dtype.name])
        common = plugrad.promote_types(left.dtype, right.dtype)
        if common.category < 2:
            common = plugrad.int64  # differences of booleans and unsigned numbers have a sign
        a, e = (to_host(x).astype(common.numpy, copy=False) for x in (left, right))
        self._values(a, e, rtol, atol, item)

    @staticmethod
    def _attribute(name: str, left: object, right: object, item: str) -> None:
        if left != right:
            raise _NotCloseError(
                f"The values for attribute '{name}' do not match: {left} != {right}.", item
            )

    def _tolerance(self, dtypes: list[str]) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [TOLERANCES.get(name, (0.0, 0.0)) for name in dtypes]
        return max(r for r, _ in found), max(a for _, a in found)

    def _values(self, a: Array, e: Array, rtol: float, atol: float, item: str) -> None:
        exact = rtol == 0 and atol == 0
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        if exact:
            close = np.asarray(a == e)
            if self.equal_nan:
                close = close | ((a != a) & (e != e))
        else:
            close = np.isclose(a.astype(wide), e.astype(wide), rtol, atol, self.equal_nan)
        if bool(close.all()):
            return
        with np.errstate(all="ignore"):
            absolute = np.where(close, 0, np.abs(a - e))
            size = np.abs(e)
            if a.dtype.kind in "iub":  # as PyTorch divides integers
                size = size.astype(np.float32 if a.ndim else np.float64)
            relative = np.where(close, 0, (absolute / size).astype(size.dtype))
        kind = "Scalars" if a.ndim == 0 else "Tensor-likes"
        text = f"{kind} are not {'equal' if exact else 'close'}!\n\n"
        if a.ndim == 0:
            text += f"Expected {e.item()} but got {a.item()}.\n"
        else:
            wrong = int(close.size - close.sum())
            text += f"Mismatched elements: {wrong} / {close.size} ({wrong / close.size:.1%})\n"
        lines = [
            _greatest("absolute", absolute, None if exact else atol),
            _greatest("relative", relative, None if exact else rtol),
        ]
        raise _NotCloseError(text + "\n".join(lines), item)


def _greatest(kind: str, difference: Array, allowed: float | None) -> str:
    up_to = "" if allowed is None else f" (up to {allowed} allowed)"
    if difference.ndim == 0:
        return f"{kind.capitalize()} difference: {difference.item()}{up_to}"
    position = int(np.argmax(difference))
    index = tuple(int(i) for i in np.unravel_index(position, difference.shape))
    return f"Greatest {kind} difference: {difference[index].item()} at index {index}{up_to}"


def _is_array(value: Any) -> bool:
    return is_tensor(value) or isinstance(value, (np.ndarray, np.generic))


def _as_tensor(value: Any) -> Any:
    return value if is_tensor(value) else plugrad.tensor(np.asarray(value))
