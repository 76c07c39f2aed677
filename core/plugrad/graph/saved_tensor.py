"""SavedTensor: the type of `grad_fn._raw_saved_self`, a handle to one saved tensor of a node.

A node's `_saved_x` and `_raw_saved_x` are found by name: the generator calls the fields that hold
saved tensors `saved_x` and those that hold other arguments `with_x`.
"""

from __future__ import annotations

from typing import Any, Final, final

from plugrad.graph.node import Node, name_of
from plugrad.graph.saved_variable import SavedVariable, kept_tensor, raise_freed
from plugrad.tensor.base import TensorBase


@final
class SavedTensor:
    """A tensor that a node saved, or will never save.

    It does not keep the tensor alive: it looks the node's up each time.

    >>> import plugrad
    >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    >>> saved = x.exp().grad_fn._raw_saved_result
    >>> type(saved).__name__
    'SavedTensor'
    """

    def __init__(
        self,
        node: Node | None = None,
        field: str = "",
        index: int = -1,
        own: SavedVariable | None = None,
    ) -> None:
        if field == "" and own is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden")
        self._node = node
        self._field = field
        self._index = index
        self._own = own

    def register_hooks(self, pack_hook: Any = None, unpack_hook: Any = None) -> None:
        """Keep `pack_hook(tensor)` instead of the tensor, and `unpack_hook` of that gives it back.

        Raises:
            TypeError: a hook is not callable.
            RuntimeError: the tensor has hooks already, or was freed, or None was saved.

        >>> import plugrad
        >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * x
        >>> saved = y.grad_fn._raw_saved_self
        >>> saved.register_hooks(lambda t: t.numpy(force=True), plugrad.from_numpy)
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError(
                "register_hooks(): incompatible function arguments. Both hooks must be callable, "
                "but got "
                f"{type(pack_hook).__name__} and {type(unpack_hook).__name__}"
            )
        variable = self._variable()
        if variable is not None:
            variable.register_hooks(pack_hook, unpack_hook)
            return
        if self._is_freed():
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")

    def unpack(self) -> TensorBase | None:
        """The saved tensor; RuntimeError once it was freed."""
        variable = self._variable()
        if variable is not None:
            return variable.unpack(self._node)
        if self._is_freed():
            raise_freed()
        return None

    @property
    def data(self) -> Any:
        """What is kept: the tensor, or what the pack hook returned."""
        variable = self._variable()
        if variable is not None:
            return variable.raw()
        if self._is_freed():
            raise_freed()
        return None

    @property
    def unpack_hook(self) -> Any:
        """The hook that unpacks the tensor, or None."""
        variable = self._variable()
        return None if variable is None else variable.unpack_hook()

    def _variable(self) -> SavedVariable | None:
        if self._own is not None:
            return self._own
        found: Any = getattr(self._node, self._field)
        if self._index >= 0 and found is not None:
            found = found[self._index] if self._index < len(found) else None
        if isinstance(found, TensorBase):
            # From here on it may need more than its stamp.
            stamp: int = getattr(self._node, f"stamp_{self._field.removeprefix('saved_')}")
            found = SavedVariable(found, -1, stamp)
            setattr(self._node, self._field, found)
        variable: SavedVariable | None = found
        return variable

    def _is_freed(self) -> bool:
        return self._node is not None and self._node._released


def make_saved_tensor(tensor: TensorBase) -> SavedTensor:
    """Save a tensor without a node, with the current hooks."""
    return SavedTensor(None, "", -1, SavedVariable(tensor))


# PyTorch's names for saved properties of tensors that are not saved themselves.
_ATTRIBUTE_ENDINGS: Final = {
    "sym_sizes": "shape",
    "sizes": "shape",
    "scalar_type": "dtype",
    "dim": "ndim",
}
_PUBLIC_ENDINGS: Final = {"shape": "sym_sizes", "dtype": "scalar_type", "ndim": "dim"}
_MISSING: Final = object()


def saved_attribute(node: Node, name: str) -> Any:
    """What `node._saved_x` or `node._raw_saved_x` is; AttributeError for any other name.

    To be called for names that the usual look-up did not find.
    """
    if name.startswith("_saved_"):
        return _saved_value(node, name)
    if name.startswith("_raw_saved_"):
        field = name[5:]
        kept: Any = getattr(node, field, _MISSING)
        if isinstance(kept, list):
            return tuple([SavedTensor(node, field, index) for index in range(len(kept))])
        if kept is None or isinstance(kept, (TensorBase, SavedVariable)):
            return SavedTensor(node, field)
    if hasattr(type(node), name):
        # A property was found and raised AttributeError itself, which is the error to report.
        return object.__getattribute__(node, name)
    raise _missing(node, name)


def saved_attribute_names(node: Node) -> list[str]:
    """The names of all `_saved_x` and `_raw_saved_x` of a node."""
    names: list[str] = []
    for field in object.__dir__(node):
        if field.startswith("saved_"):
            names.append("_" + field)
            names.append("_raw_" + field)
        elif field.startswith("with_"):
            stem = field[5:]
            start, _, ending = stem.rpartition("_")
            names.append("_saved_" + stem)
            if start and ending in _PUBLIC_ENDINGS:
                names.append(f"_saved_{start}_{_PUBLIC_ENDINGS[ending]}")
    return names


def _saved_value(node: Node, name: str) -> Any:
    kept: Any = getattr(node, name[1:], _MISSING)
    if isinstance(kept, (TensorBase, SavedVariable)):
        return kept_tensor(kept, getattr(node, f"stamp_{name[7:]}", 0), node)
    if kept is None or isinstance(kept, list):
        if node._released:
            raise_freed()
        if kept is None:
            return None
        return tuple([None if item is None else item.unpack(node) for item in kept])
    stem = name[7:]
    value: Any = getattr(node, "with_" + stem, _MISSING)
    if value is _MISSING:
        for ending, attribute in _ATTRIBUTE_ENDINGS.items():
            if stem.endswith("_" + ending):
                field = f"with_{stem[: -len(ending)]}{attribute}"
                value = getattr(node, field, _MISSING)
                break
    if value is _MISSING:
        raise _missing(node, name)
    return tuple(value) if isinstance(value, list) else value


def _missing(node: Node, name: str) -> AttributeError:
    return AttributeError(f"{name_of(node)!r} object has no attribute {name!r}")


def kept_by(node: Node, fields: tuple[tuple[str, str], ...]) -> list[tuple[str, Any]]:
    """What `saving_fields` of a node hold: names, and tensors or what pack hooks returned.

    Unpacks nothing, and leaves out tensors that the node has freed.
    """
    found: list[tuple[str, Any]] = []
    for field, name in fields:
        kept: Any = getattr(node, field, None)
        if isinstance(kept, list):
            for index, item in enumerate(kept):
                if isinstance(item, SavedVariable):
                    found.append((f"{name}[{index}]", item.raw()))
        elif isinstance(kept, SavedVariable):
            found.append((name, kept.raw()))
        elif isinstance(kept, TensorBase):
            found.append((name, kept))
    return found


def saving_fields(node: Node) -> tuple[tuple[str, str], ...]:
    """The fields of nodes of this class that hold saved tensors, and the names of the tensors."""
    names = list(object.__dir__(node))
    if "_saved" in names:  # a custom Function's: all others are the user's, or properties
        return (("_saved", "tensors"),)
    fields = [name for name in names if name.startswith("saved_")]
    return tuple([(name, name.removeprefix("saved_")) for name in fields])
