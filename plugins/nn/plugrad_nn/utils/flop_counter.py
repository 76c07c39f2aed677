"""`plugrad.utils.flop_counter`: counts a program's floating point operations by module.

It counts matrix products, convolutions and attention, which dominate in large models; a
multiplication with an addition counts as two operations.
"""

from __future__ import annotations

import io
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

import plugrad
from plugrad.overrides import PlugradDispatchMode
from plugrad_nn.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Formula = TypeVar("Formula", bound=Callable[..., int])

ops: Any = plugrad.ops.plugrad

# The function that counts one call, by operator (all its overloads).
flop_registry: dict[Any, Callable[..., int]] = {}

_SUFFIXES = ("", "K", "M", "B", "T")


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A decorator: the function counts the calls of operators.

    Args:
        targets: an operator, as in ``plugrad.ops.plugrad.mm``, or several.
        get_raw: pass tensors to the function; otherwise it gets their shapes.

    The function gets the operator's arguments, and the result as the keyword `out_val`, or its
    shape as `out_shape`.

    Raises:
        ValueError: a target is not an operator, or one overload of it.

    >>> import plugrad
    >>> from plugrad.utils.flop_counter import FlopCounterMode, register_flop_formula
    >>> @register_flop_formula(plugrad.ops.plugrad.cdist)
    ... def cdist_flop(x1, x2, *args, out_shape=None, **kwargs):
    ...     return 3 * x1[0] * x2[0] * x1[1]
    """

    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not hasattr(target, "overloads"):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be all overloads of "
                    f"an operator, such as plugrad.ops.plugrad.mm, got {target!r}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula if get_raw else _on_shapes(formula)
        return formula

    return register


def _on_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    def on_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        shapes = {name: _shape(value) for name, value in kwargs.items()}
        return formula(*map(_shape, args), out_shape=_shape(out_val), **shapes)

    return on_tensors


def _shape(value: Any) -> Any:
    if isinstance(value, plugrad.Tensor):
        return value.shape
    if isinstance(value, (list, tuple)) and any(isinstance(v, plugrad.Tensor) for v in value):
        return [_shape(each) for each in value]
    return value


@register_flop_formula(ops.mm)
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of a matrix product of ``(m, k)`` and ``(k, n)``: ``2 m n k``."""
    return 2 * int(a_shape[0]) * int(a_shape[1]) * int(b_shape[1])


@register_flop_formula(ops.addmm)
def addmm_flop(
    self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of the product; the sum is not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(ops.bmm)
def bmm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """A matrix product's operations for each item of the batch."""
    return int(a_shape[0]) * mm_flop(a_shape[1:], b_shape[1:])


@register_flop_formula(ops.baddbmm)
def baddbmm_flop(
    self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of the products; the sum is not counted."""
    return bmm_flop(a_shape, b_shape)


def _product_flop(inner: int) -> Callable[..., int]:
    """The formula of a product that sums over a dimension of its first operand."""

    def product_flop(a_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
        return 2 * int(math.prod(out_shape)) * int(a_shape[inner])

    return product_flop


# Of (*, m, k) and, transposed, (*, n, k); of, transposed, (*, k, m) and (*, k, n); of (*, in) and,
# transposed, (out, in).
register_flop_formula([ops._matmul_nh, ops.linear])(_product_flop(-1))
register_flop_formula(ops._matmul_hn)(_product_flop(-2))


@register_flop_formula(ops.linear_backward)
def linear_backward_flop(
    x_shape: Any,
    grad_shape: Any,
    w_shape: Any,
    output_mask: Sequence[bool],
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """A product for the gradient of the input, and one for the gradient of the weight."""
    products = sum(map(bool, output_mask[:2]))
    return 2 * products * int(math.prod(x_shape)) * int(w_shape[0])


def conv_flop_count(
    x_shape: Sequence[int], w_shape: Sequence[int], out_shape: Sequence[int], transposed: bool
) -> int:
    """The operations of a convolution: each output is a product with one filter; transposed, each
    input.

    Args:
        x_shape: of the input, ``(batch, channels, *spatial)``.
        w_shape: of the weight, ``(out, in / groups, *kernel)``.
        out_shape: of the result.
        transposed: whether it is a transposed convolution.
    """
    spatial = (x_shape if transposed else out_shape)[2:]
    return int(2 * x_shape[0] * math.prod(spatial) * math.prod(w_shape))


@register_flop_formula(ops.convolution)
def conv_flop(
    x_shape: Any,
    w_shape: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The operations of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(ops.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Any,
    x_shape: Any,
    w_shape: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
    out_shape: Any = None,
) -> int:
    """As many for the gradient of the input as forward, and as many for the gradient of the weight.

    As in PyTorch, the weight's gradient is counted as if all channels were one group.
    """
    count = conv_flop_count(x_shape, w_shape, grad_out_shape, transposed)
    return (int(output_mask[0]) + int(output_mask[1]) * groups) * count


def sdpa_flop_count(
    query_shape: Sequence[int], key_shape: Sequence[int], value_shape: Sequence[int]
) -> int:
    """The operations of attention: scores, and their product with the values.

    Args:
        query_shape: ``(*batch, length, features)``.
        key_shape: ``(*batch, source, features)``.
        value_shape: ``(*batch, source, channels)``.
    """
    return _products(query_shape, key_shape, value_shape, 1)


def sdpa_backward_flop_count(
    grad_out_shape: Sequence[int],
    query_shape: Sequence[int],
    key_shape: Sequence[int],
    value_shape: Sequence[int],
) -> int:
    """The operations of attention's gradients: the scores again, and two products for each of the
    two products of forward."""
    return _products(query_shape, key_shape, value_shape, 2) + _products(
        query_shape, key_shape, (*value_shape[:-1], 0), 1
    )


def _products(query: Sequence[int], key: Sequence[int], value: Sequence[int], times: int) -> int:
    scores = math.prod(query[:-1]) * int(key[-2])
    return times * 2 * scores * (int(query[-1]) + int(value[-1]))


@register_flop_formula(ops._scaled_dot_product_attention)
def sdpa_flop(
    query_shape: Any,
    key_shape: Any,
    value_shape: Any,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The operations of attention; a causal mask does not reduce the count."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


@register_flop_formula(ops._scaled_dot_product_attention_backward)
def sdpa_backward_flop(
    grad_out_shape: Any,
    query_shape: Any,
    key_shape: Any,
    value_shape: Any,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The operations of attention's gradients."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


@register_flop_formula([ops._lstm_layer, ops._gru_layer])
def recurrent_flop(
    gates_shape: Any, hx_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of the product of each step's hidden states with their weight."""
    return 2 * int(math.prod(gates_shape)) * int(hx_shape[1])


def _recurrent_backward_flop(weight: int) -> Callable[..., int]:
    """The formula for a layer's gradients; the weight's gradient is at index `weight`."""

    def recurrent_backward_flop(*args: Any, out_shape: Any = None, **kwargs: Any) -> int:
        sizes, reverse, wanted = args[-3:]
        (rows, columns), width = out_shape[0], out_shape[1][1]
        # The first step's product is only for the states that the layer begins with.
        passed = rows if wanted[1] else rows - sizes[-1 if reverse else 0]
        return 2 * int(columns) * int(width) * int(passed + (rows if wanted[weight] else 0))

    return recurrent_backward_flop


register_flop_formula(ops._lstm_layer_backward)(_recurrent_backward_flop(3))
register_flop_formula(ops._gru_layer_backward)(_recurrent_backward_flop(2))


class FlopCounterMode:
    """A context manager that counts the floating point operations in its block, by module.

    Args:
        mods: not needed any more; modules are found by themselves.
        depth: the depth of modules in the printed table; None prints all.
        display: whether a table is printed at the end of the block.
        custom_mapping: more formulas for operators, in addition to `register_flop_formula`. They
            get shapes, or tensors if they have a true attribute `_get_raw`.

    >>> import plugrad
    >>> from plugrad.utils.flop_counter import FlopCounterMode
    >>> model = plugrad.nn.Linear(4, 3)
    >>> with FlopCounterMode(display=False) as counter:
    ...     model(plugrad.ones(2, 4)).sum().backward()
    >>> counter.get_total_flops()
    96
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Callable[..., int]] | None = None,
    ) -> None:
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it", stacklevel=2
            )
        self.depth = depth
        self.display = display
        self.flop_counts: dict[str, dict[Any, int]] = {}
        self._formulas = {
            op: formula if getattr(formula, "_get_raw", False) else _on_shapes(formula)
            for op, formula in (custom_mapping or {}).items()
        }
        self._tracker = ModuleTracker()
        self._mode: _Counting | None = None

    def get_total_flops(self) -> int:
        """The sum of all that was counted.

        >>> import plugrad
        >>> from plugrad.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = plugrad.ones(2, 3) @ plugrad.ones(3, 4)
        >>> counter.get_total_flops()
        48
        """
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The counts by module name and by operator. The name is the class of the outermost module
        and the attributes from there on, such as ``"Sequential.0"``; ``"Global"`` has all counts.

        >>> import plugrad
        >>> from plugrad.utils.flop_counter import FlopCounterMode
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 3))
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = model(plugrad.ones(4, 2))
        >>> sorted(counter.get_flop_counts())
        ['Global', 'Sequential', 'Sequential.0']
        """
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table.

        Args:
            depth: the depth of modules; by default the mode's.

        >>> import plugrad
        >>> from plugrad.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = plugrad.ones(2, 3) @ plugrad.ones(3, 4)
        >>> "Global" in counter.get_table()
        True
        """
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [row for name in self._shown(depth) for row in self._rows(name, total)]
        suffix = _suffix(total)
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        table.add_column("Module", no_wrap=True)
        table.add_column("FLOP", justify="right", no_wrap=True)
        table.add_column("% Total", justify="right", no_wrap=True)
        for name, count in rows:
            share = f"{count / total:.2%}" if total else "0%"
            table.add_row(Text(name), _with_suffix(count, suffix), share)
        out = io.StringIO()
        Console(file=out, width=10_000, color_system=None).print(table)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def _shown(self, depth: int | None) -> Iterable[str]:
        """Modules in alphabetical order, and the total only if it differs from a module's count."""
        names = sorted(name for name in self.flop_counts if name != "Global")
        tops = [self.flop_counts[name] for name in names if "." not in name]
        if self.flop_counts.get("Global") not in tops or not names:
            yield "Global"
        for name in names:
            if depth is None or name.count(".") < depth:
                yield name

    def _rows(self, name: str, total: int) -> Iterable[tuple[str, int]]:
        counts = self.flop_counts.get(name, {})
        indent = " " * name.count(".")
        yield indent + name, sum(counts.values())
        for op, count in counts.items():
            yield f"{indent} - {op}", count

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts = {}
        self._tracker.__enter__()
        self._mode = _Counting(self._count)
        self._mode.__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        mode, self._mode = self._mode, None
        if mode is None:
            raise RuntimeError("FlopCounterMode is left, but was not entered")
        mode.__exit__(*args)
        self._tracker.__exit__()
        if self.display:
            print(self.get_table())

    def _count(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        op = func.overloadpacket
        formula = self._formulas.get(op) or flop_registry.get(op)
        if formula is None:
            return
        count = formula(*args, **kwargs, out_val=out)
        for name in self._tracker.parents:
            counts = self.flop_counts.setdefault(name, defaultdict(int))
            counts[op] += count


class _Counting(PlugradDispatchMode):
    def __init__(self, count: Callable[[Any, Any, Any, Any], None]) -> None:
        self._count = count

    def __plugrad_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self._count(func, args, kwargs, out)
        return out


def _suffix(count: int) -> str:
    """The letter by which a count has at most a few digits before the point."""
    index = max(0, min(len(_SUFFIXES) - 1, (len(str(count)) - 2) // 3))
    return _SUFFIXES[index]


def _with_suffix(count: int, suffix: str) -> str:
    index = _SUFFIXES.index(suffix)
    return f"{count / 1000**index:.3f}{suffix}" if index else str(count)
