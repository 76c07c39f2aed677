"""Arguments as data: made for either library, and written as text to paste."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plugrad.testing.cases import Arguments

_LAYOUTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "contiguous": ("", lambda t: t),
    "transposed": (".mT.contiguous().mT", lambda t: t.mT.contiguous().mT),
    "expanded": ("[:1].expand{shape}", lambda t: t[:1].expand(t.shape)),
    "sliced": (
        ".repeat_interleave(2, -1)[..., ::2]",
        lambda t: t.repeat_interleave(2, -1)[..., ::2],
    ),
    "offset": (".repeat(2, {ones})[{rows}:]", lambda t: t.repeat(2, *[1] * (t.ndim - 1))[len(t) :]),
}
_ROUNDING = {
    "float64": 2.0**-52,
    "complex128": 2.0**-52,
    "float32": 2.0**-23,
    "complex64": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
LEAST_DIMS = {"contiguous": 0, "transposed": 2, "expanded": 1, "sliced": 1, "offset": 1}


class Argument:
    """An argument of a call."""

    def make(self, lib: Any) -> Any:
        """The argument in a library."""
        raise NotImplementedError

    def text(self) -> str:
        """The argument as an expression of `lib`."""
        raise NotImplementedError


@dataclass
class Tensor(Argument):
    """A tensor.

    Attributes:
        values: what it holds; bfloat16 is held as float32.
    """

    values: np.ndarray[Any, Any]
    dtype: str
    layout: str = "contiguous"
    requires_grad: bool = False

    def __post_init__(self) -> None:
        if self.values.ndim < LEAST_DIMS[self.layout] or not self.values.size:
            self.layout = "contiguous"

    def requires_grad_(self) -> None:
        self.requires_grad = True

    def make(self, lib: Any) -> Any:
        if not self.values.size:
            made = lib.empty(self.values.shape, dtype=getattr(lib, self.dtype))
        else:
            made = lib.from_numpy(np.array(self.values, order="C"))
        if made.dtype is not getattr(lib, self.dtype):
            made = made.to(getattr(lib, self.dtype))
        made = _LAYOUTS[self.layout][1](made)
        return made.requires_grad_() if self.requires_grad else made

    def moved(self, seed: int) -> Tensor:
        """The same tensor, each element times 1 plus or minus a rounding or two."""
        values, layout = self.values, self.layout
        if values.dtype.kind not in "fc" or not values.size:
            return self
        if layout == "expanded":
            values, layout = np.broadcast_to(values[:1], values.shape), "contiguous"
        signs = np.random.default_rng(seed).choice([-2.0, -1.0, 1.0, 2.0], values.shape)
        with np.errstate(all="ignore"):
            values = (values * (1.0 + signs * _ROUNDING[self.dtype])).astype(values.dtype)
        return replace(self, values=values, layout=layout)

    def text(self) -> str:
        shape = self.values.shape
        values = repr(self.values.tolist()).replace("nan", "float('nan')")
        values = values.replace("inf", "float('inf')").replace("-float('inf')", "float('-inf')")
        if "nan" in values and "nanj" in values:
            values = "float('nan')"
        made = f"lib.tensor({values}, dtype=lib.{self.dtype})"
        if not self.values.size:
            made = f"lib.empty({shape}, dtype=lib.{self.dtype})"
        ones = ", ".join("1" * (len(shape) - 1))
        made += _LAYOUTS[self.layout][0].format(
            shape=shape, ones=ones, rows=shape[0] if shape else 0
        )
        return made + (".requires_grad_()" if self.requires_grad else "")


@dataclass(frozen=True)
class Named(Argument):
    """Something that both libraries have under one name, such as a dtype."""

    path: str

    def make(self, lib: Any) -> Any:
        for part in self.path.split("."):
            lib = getattr(lib, part)
        return lib

    def text(self) -> str:
        return f"lib.{self.path}"


class Specs(Arguments):
    """Makes of samples arguments that belong to no library yet."""

    def dtype_named(self, name: str) -> Any:
        return Named(name)

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        dtype = values.dtype.name
        if dtype == "bfloat16":
            values = values.astype(np.float32)
        return Tensor(values, dtype, layout)


def make(value: Any, lib: Any) -> Any:
    """The arguments in a library."""
    if isinstance(value, Argument):
        return value.make(lib)
    if type(value) in (list, tuple):
        return type(value)(make(item, lib) for item in value)
    if type(value) is dict:
        return {key: make(item, lib) for key, item in value.items()}
    return value


def moved(value: Any, seed: int) -> Any:
    """The arguments with each floating point number moved by a rounding or two, up or down.

    Elements no longer share memory, so shared ones become distinct, too.
    """
    if isinstance(value, Tensor):
        return value.moved(seed)
    if type(value) in (list, tuple):
        return type(value)(moved(item, seed) for item in value)
    if type(value) is dict:
        return {key: moved(item, seed) for key, item in value.items()}
    return value


def text(value: Any) -> str:
    """The arguments as source; `lib` is the library."""
    if isinstance(value, Argument):
        return value.text()
    if type(value) is list:
        return f"[{', '.join(map(text, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(text, value))}{',' * (len(value) == 1)})"
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {text(item)}' for key, item in value.items())}}}"
    if isinstance(value, float) and value != value:
        return "float('nan')"
    if value in (float("inf"), float("-inf")) if isinstance(value, float) else False:
        return f"float('{value}')"
    return repr(value)


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in the order in which `make` makes them."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in tensors_in(item)]
    return []


def describe(value: Any) -> Any:
    """A result as plain data that can be compared between libraries."""
    if hasattr(value, "requires_grad"):
        return _describe_tensor(value)
    if isinstance(value, (list, tuple)):
        return [describe(item) for item in value]
    if isinstance(value, dict):
        return {key: describe(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return str(value).replace("torch.", "plugrad.")


@dataclass
class Seen:
    """What is compared of a tensor."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...]
    requires_grad: bool
    is_leaf: bool
    values: np.ndarray[Any, Any]


def _describe_tensor(tensor: Any) -> Seen:
    values = tensor.detach()
    if hasattr(values, "_is_zerotensor") and values._is_zerotensor():
        values = values.clone()
    if hasattr(values, "resolve_conj"):
        values = values.resolve_conj().resolve_neg()
    dtype = str(tensor.dtype).rpartition(".")[2]
    if dtype == "bfloat16":
        values = values.float()
    if dtype == "complex32":
        raise NotImplementedError("complex32 is not implemented")
    return Seen(
        tuple(tensor.shape),
        dtype,
        tuple(tensor.stride()),
        tensor.requires_grad,
        tensor.is_leaf,
        np.array(values.numpy()),
    )
