"""Printing: a tensor as text, in PyTorch's format."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any, Final, final

import numpy as np

from plugrad.dispatch.backends.active import find_backend, is_active
from plugrad.dispatch.keys import TRANSFORMS_BIT
from plugrad.dtype import bool_, complex64, complex128, float64, get_default_dtype, int64
from plugrad.graph.dual_tensors import tangent_of
from plugrad.graph.history import grad_fn_of
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of
from plugrad.tensor.interop.arrays import host_array
from plugrad.tensor.levels import Wrapped


@final
class _PrintOptions:
    """What `set_printoptions` sets."""

    def __init__(self) -> None:
        self.precision: int = 4
        self.threshold: float = 1000.0
        self.edgeitems: int = 3
        self.linewidth: int = 80
        self.sci_mode: bool | None = None


_options: Final = _PrintOptions()

# profile -> precision, threshold, edgeitems, linewidth
_PROFILES: Final[dict[str, tuple[int, float, int, int]]] = {
    "default": (4, 1000.0, 3, 80),
    "short": (2, 1000.0, 2, 80),
    "full": (4, inf, 3, 80),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed; arguments that are None change nothing, except `sci_mode`, where
    None is automatic.

    Args:
        precision: digits after the point (4).
        threshold: number of elements above which only the edges are printed (1000).
        edgeitems: elements printed at both ends of each summarized dimension (3).
        linewidth: characters per line (80).
        profile: "default", "short" or "full"; the other arguments override it.
        sci_mode: True or False forces scientific notation on or off.

    >>> import plugrad
    >>> plugrad.set_printoptions(precision=2)
    >>> plugrad.tensor([1.12345])
    tensor([1.12])
    >>> plugrad.set_printoptions(profile="default")
    """
    if profile is not None and profile in _PROFILES:
        chosen = _PROFILES[profile]
        _options.precision = chosen[0]
        _options.threshold = chosen[1]
        _options.edgeitems = chosen[2]
        _options.linewidth = chosen[3]
    if precision is not None:
        _options.precision = precision
    if threshold is not None:
        _options.threshold = float(threshold)
    if edgeitems is not None:
        _options.edgeitems = edgeitems
    if linewidth is not None:
        _options.linewidth = linewidth
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The present options, ready to be passed to `set_printoptions`."""
    return {
        "precision": _options.precision,
        "threshold": _options.threshold,
        "edgeitems": _options.edgeitems,
        "linewidth": _options.linewidth,
        "sci_mode": _options.sci_mode,
    }


@final
class _Formatter:
    """Gives every element of one tensor the same notation and width."""

    def __init__(self, values: list[Any], is_float: bool) -> None:
        self.is_float = is_float
        self.is_integral = True
        self.is_scientific = False
        self.width = 1
        if not is_float:
            for value in values:
                self.width = max(self.width, len(str(value)))
            return
        # Zeros and non-finite values affect neither the notation nor the width.
        relevant = [value for value in values if value != 0.0 and isfinite(value)]
        if not relevant:
            return
        magnitudes = [abs(value) for value in relevant]
        largest: float = max(magnitudes)
        smallest: float = min(magnitudes)
        self.is_integral = all(value.is_integer() for value in relevant)
        forced = _options.sci_mode
        self.is_scientific = (
            largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
            if forced is None
            else forced
        )
        for value in relevant:
            self.width = max(self.width, len(self._number(value)))

    def _number(self, value: Any) -> str:
        if self.is_scientific:
            return f"{value:.{_options.precision}e}"
        if not self.is_integral:
            return f"{value:.{_options.precision}f}"
        # The point of "1." shows that the tensor holds floats; nan and inf show it themselves.
        return f"{value:.0f}." if isfinite(value) else f"{value:.0f}"

    def format(self, value: Any) -> str:
        text = self._number(value) if self.is_float else str(value)
        return text.rjust(self.width)


@final
class _Layout:
    """Arranges the formatted elements of one tensor in brackets and lines."""

    def __init__(
        self, texts: list[str], kept: tuple[int, ...], elided: list[bool], element_length: int
    ) -> None:
        self.texts = texts
        self.kept = kept
        self.elided = elided
        self.element_length = element_length

    def render(self, dim: int, offset: int, indent: int) -> str:
        """The text of the sub-tensor at element `offset` that has lost `dim` dimensions."""
        last = len(self.kept) - 1
        length = self.kept[dim]
        if dim == last:
            return self._row(offset, length, indent)
        stride = 1
        for later in self.kept[dim + 1 :]:
            stride *= later
        parts = [self.render(dim + 1, offset + i * stride, indent + 1) for i in range(length)]
        if self.elided[dim]:
            parts.insert(length // 2, "...")
        separator = "," + "\n" * (last - dim) + " " * (indent + 1)
        return "[" + separator.join(parts) + "]"

    def _row(self, offset: int, length: int, indent: int) -> str:
        parts = self.texts[offset : offset + length]
        if self.elided[-1]:
            parts.insert(length // 2, " ..." if length else "...")
        per_line = max(1, (_options.linewidth - indent) // self.element_length)
        lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _complex_text(real: str, imag: str) -> str:
    imag = (imag + "j").lstrip()
    return real + imag if imag[0] in "+-" else real + "+" + imag


def array_text(array: Any, indent: int) -> str:
    """The elements of a NumPy array as PyTorch prints them, if the first line begins at `indent`.

    Args:
        array: a NumPy array of any dtype that plugrad has.
        indent: the column of the first bracket.
    """
    if array.size == 0:
        return "[]"
    summarize = array.size > _options.threshold
    elided: list[bool] = []
    shown: list[Any] = []
    edge = _options.edgeitems
    for length in array.shape:
        cut = summarize and length > 2 * edge
        elided.append(cut)
        edges = [*range(edge), *range(length - edge, length)] if cut else list(range(length))
        shown.append(np.array(edges, np.intp))
    if any(elided):
        # All dimensions at once: with one of them left, it may be more than memory can hold.
        array = array[np.ix_(*shown)]
    kept: tuple[int, ...] = array.shape
    array = array.reshape(-1)
    if array.dtype.kind == "c":
        reals: list[Any] = array.real.astype(np.float64).tolist()
        imags: list[Any] = array.imag.astype(np.float64).tolist()
        for_real = _Formatter(reals, True)
        for_imag = _Formatter(imags, True)
        texts = [
            _complex_text(for_real.format(real), for_imag.format(imag))
            for real, imag in zip(reals, imags, strict=True)
        ]
        element_length = for_real.width + for_imag.width + 3
    else:
        # bfloat16 has kind "V"; every float that is not float64 is widened without loss.
        is_float = array.dtype.kind not in "biu"
        values: list[Any] = (array.astype(np.float64) if is_float else array).tolist()
        formatter = _Formatter(values, is_float)
        texts = [formatter.format(value) for value in values]
        element_length = formatter.width + 2
    if not kept:
        return texts[0]
    return _Layout(texts, kept, elided, element_length).render(0, 0, indent)


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    parts = [text]
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            column += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


def _grad_suffix(tensor: TensorBase) -> str | None:
    if not needs_grad(tensor):
        return None
    try:
        grad_fn = grad_fn_of(tensor)
    except RuntimeError:
        # A view made in no_grad mode and then changed in place has no valid history.
        return "grad_fn=<Invalid>"
    return "requires_grad=True" if grad_fn is None else f"grad_fn=<{type(grad_fn).name(grad_fn)}>"


def _level_repr(tensor: TensorBase) -> str:
    """The text of a tensor of a level, with the tensor that it wraps below."""
    wrapped: Wrapped = tensor._backend_array
    number = wrapped.level.number if wrapped.level.alive else -2
    inside = tensor_repr(wrapped.value).replace("\n", "\n    ")
    if wrapped.batch_dim >= 0:
        kind = f"BatchedTensor(lvl={number}, bdim={wrapped.batch_dim}"
    else:
        kind = f"GradTrackingTensor(lvl={number}"
    return f"{kind}, value=\n    {inside}\n)"


def _can_be_read(tensor: TensorBase) -> bool:
    """Not if the backend's plugin was unloaded, or other processes have some of the elements."""
    kind = tensor.device.type
    return is_active(kind) and find_backend(kind).backend.is_local(tensor._backend_array)


def tensor_repr(tensor: TensorBase) -> str:
    """The text of a tensor: elements, then shape, dtype, device and graph unless they are the
    default, then the tangent of a dual tensor.

    A subclass prints under its own name; a class attribute `_printed_as` of that very class
    replaces it.
    """
    if tensor._keyset & TRANSFORMS_BIT:
        return _level_repr(tensor)
    if is_active(tensor.device.type):
        text: str | None = find_backend(tensor.device.type).backend.printed(tensor._backend_array)
        if text is not None:
            return text
    cls: Any = type(tensor)
    prefix = str(cls.__dict__.get("_printed_as", cls.__name__)) + "("
    indent = len(prefix)
    suffixes: list[str] = []
    shape = sizes_of(tensor)
    dtype = tensor.dtype
    default = get_default_dtype()
    shows_size = False
    shows_dtype = dtype is not default
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if tensor.device.type == "meta" or not _can_be_read(tensor):
        # There is no data, or this process cannot read it.
        shows_size = True
        text = "..."
    elif 0 in shape:
        # Without elements nothing shows the shape, unless it is (0,), nor the dtype.
        shows_size = len(shape) != 1
        text = "[]"
    else:
        shows_size = _options.edgeitems == 0
        default_complex = complex128 if default is float64 else complex64
        # Elements show by themselves that they are bools, integers or complex.
        shows_dtype = shows_dtype and dtype not in (int64, bool_, default_complex)
        text = array_text(host_array(tensor), indent)
    if shows_size:
        suffixes.append(f"size={shape}")
    if shows_dtype:
        suffixes.append(f"dtype={dtype}")
    grad = _grad_suffix(tensor)
    if grad is not None:
        suffixes.append(grad)
    tangent = tangent_of(tensor)
    if tangent is not None:
        suffixes.append(f"tangent={tensor_repr(tangent)}")
    return _with_suffixes(prefix + text, suffixes, indent)
