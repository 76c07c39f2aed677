"""PyTorch's sample inputs and functions in plugrad's words."""

from __future__ import annotations

import functools
import types
from typing import Any

import torch

import plugrad

# Where a function of PyTorch's is found under a name, with plugrad's name for the place.
PLACES = (
    (torch, ""),
    (torch.nn.functional, "nn.functional."),
    (torch.linalg, "linalg."),
    (torch.fft, "fft."),
    (torch.special, "special."),
    (torch.signal.windows, "signal.windows."),
    (torch.masked, "masked."),
    (torch.Tensor, "Tensor."),
)


def dtype_name(dtype: Any) -> str:
    """``float32`` for PyTorch's dtype or ours."""
    return str(dtype).partition(".")[2]


def dtype_of(tensor: torch.Tensor) -> plugrad.dtype:
    """plugrad's dtype for the dtype of a PyTorch tensor."""
    return getattr(plugrad, dtype_name(tensor.dtype))


# Of `LinearCrossEntropyOptions`.
_CHUNKS = ("allow_retain_graph", "batch_chunk_size", "chunking_method", "acc_policy", "acc_dtype")


class Samples:
    """Turns PyTorch's values into ours; what is one tensor there is one tensor here.

    Args:
        device: where tensors that are in the CPU's memory there are here.
    """

    def __init__(self, device: str = "cpu") -> None:
        self._device = device
        self._known: dict[int, tuple[Any, Any]] = {}
        self._bases: dict[tuple[int, torch.dtype], tuple[Any, Any]] = {}

    def of(self, value: Any) -> Any:
        """The same value for plugrad."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, (torch.dtype, torch.memory_format)):
            return getattr(plugrad, dtype_name(value))
        if isinstance(value, torch.layout):
            return plugrad.strided
        if isinstance(value, torch.device):
            return plugrad.device(self._device if value.type == "cpu" else value.type)
        if isinstance(value, str):
            return self._device if value == "cpu" else value
        if isinstance(value, torch.nn.TransformerEncoderLayer):
            return self._encoder_layer(value)
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            return self._packed(value)
        if isinstance(value, torch.nn.LinearCrossEntropyOptions):
            return plugrad.nn.LinearCrossEntropyOptions(
                **{name: self.of(getattr(value, name)) for name in _CHUNKS}
            )
        if isinstance(value, torch.Size):
            return plugrad.Size(value)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self.of(item) for item in value)
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        return our_function(value) or value if callable(value) else value

    def tensor(self, tensor: torch.Tensor) -> plugrad.Tensor:
        """A tensor with the same elements, dtype, layout and wish for a gradient."""
        known = self._known.get(id(tensor))
        if known is not None:
            return known[1]
        plain = tensor.detach().resolve_conj().resolve_neg()
        dtype = dtype_of(tensor)
        if tensor.is_meta:
            made = plugrad.empty_strided(
                tuple(tensor.shape), tensor.stride(), dtype=dtype, device="meta"
            )
        elif plain.numel() == 0:
            made = plugrad.empty(tuple(plain.shape), dtype=dtype)
        else:
            base = self._memory(plain)
            made = base.as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset())
            made = made.detach()
        if not tensor.is_meta and self._device != "cpu":
            made = made.to(self._device)
        if tensor.requires_grad:
            made.requires_grad_(True)
        # With the tensor itself, so that its id stays its own.
        self._known[id(tensor)] = (tensor, made)
        return made

    def _encoder_layer(self, layer: torch.nn.TransformerEncoderLayer) -> plugrad.nn.Module:
        made = plugrad.nn.TransformerEncoderLayer(
            layer.self_attn.embed_dim,
            layer.self_attn.num_heads,
            layer.linear1.out_features,
            layer.dropout.p,
            self.of(layer.activation),
            layer.norm1.eps,
            layer.self_attn.batch_first,
            layer.norm_first,
            layer.linear1.bias is not None,
            self._device,
            dtype_of(layer.linear1.weight),
        )
        made.load_state_dict(self.of(layer.state_dict()))
        return made

    def _packed(self, value: torch.nn.utils.rnn.PackedSequence) -> Any:
        orders = (value.sorted_indices, value.unsorted_indices)
        # The sizes stay in the CPU's memory.
        sizes = plugrad.tensor(value.batch_sizes.tolist())
        made = plugrad.nn.utils.rnn.PackedSequence
        return made(self.of(value.data), sizes, *map(self.of, orders))

    def _memory(self, tensor: torch.Tensor) -> plugrad.Tensor:
        """What a tensor is a view of, as one row: what shares memory there shares it here."""
        storage = tensor.untyped_storage()
        key = (storage.data_ptr(), tensor.dtype)
        if key not in self._bases:
            row = tensor.new_empty(0).set_(storage, 0, (storage.nbytes() // tensor.itemsize,))
            if tensor.is_floating_point() and tensor.itemsize < 4:
                made = plugrad.tensor(row.float().numpy()).to(dtype_of(tensor))
            else:
                made = plugrad.tensor(row.numpy())
            self._bases[key] = (storage, made)
        return self._bases[key][1]


def our_function(function: Any) -> Any:
    """What a function of PyTorch's or of its table is with plugrad; None if there is no such."""
    if isinstance(function, functools.partial):
        inner = our_function(function.func)
        return inner and functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, torch.nn.PairwiseDistance):
        # The table's only module. plugrad has the function.
        settings = {"p": function.norm, "eps": function.eps, "keepdim": function.keepdim}
        return functools.partial(plugrad.nn.functional.pairwise_distance, **settings)
    name = getattr(function, "__name__", "")
    for place, ours in PLACES:
        if name and getattr(place, name, None) is function:
            return named(ours + name)
    if isinstance(function, types.FunctionType):
        # The table's own: reductions to a number, calls with fixed arguments.
        if _of_the_table(function):
            return rebound(function)
        return named(f"{function.__module__.removeprefix('torch').lstrip('.')}.{name}".lstrip("."))
    return None


def named(path: str) -> Any:
    """The object at a dotted path in plugrad; None if there is none."""
    found: Any = plugrad
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def _of_the_table(function: types.FunctionType) -> bool:
    # Not `__module__`, which decorators copy to functions of their own.
    return str(function.__globals__["__name__"]).startswith("torch.testing")


class _Torch:
    """plugrad under the name of PyTorch, with its operators in the namespace `aten`."""

    ops = types.SimpleNamespace(aten=plugrad.ops.plugrad)

    def __getattr__(self, name: str) -> Any:
        return getattr(plugrad, name)


_rebound: dict[types.FunctionType, Any] = {}


def rebound(function: types.FunctionType) -> Any:
    """A function of PyTorch's table, with plugrad where it says torch."""
    if function in _rebound:
        return _rebound[function]
    _rebound[function] = function
    names = dict(function.__globals__)
    names["torch"] = _Torch()
    names["F"] = plugrad.nn.functional
    for name in function.__code__.co_names:
        used = names.get(name)
        if isinstance(used, types.FunctionType) and _of_the_table(used):
            names[name] = rebound(used)
    cells = function.__closure__
    if cells is not None:
        cells = tuple(_rebound_cell(cell) for cell in cells)
    made = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    _rebound[function] = made
    return made


def _rebound_cell(cell: types.CellType) -> types.CellType:
    try:
        value = cell.cell_contents
    except ValueError:  # not filled yet
        return cell
    if not callable(value) or isinstance(value, type):
        return cell
    return types.CellType(our_function(value) or value)


def function_of(entry: Any) -> Any:
    """plugrad's function for an entry of the table; None if there is none."""
    # First the entry's own call: some names stand for a method, or a call with fixed arguments.
    found = our_function(entry.op)
    if found is None:
        found = named(entry.name)
    return getattr(plugrad.Tensor, entry.name, None) if found is None else found
