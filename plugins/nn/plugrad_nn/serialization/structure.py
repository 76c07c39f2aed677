"""Converts nested tensors and plain values to JSON and back. The JSON is part of a file, so it is
not trusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrad import Tensor

# The one name that an entry of the format cannot have.
RESERVED_NAME = "__metadata__"
# Python and its JSON reader run out of stack somewhat above this.
DEEPEST = 100

Array = npt.NDArray[Any]
# Name of an entry, array, device it was saved on -> tensor.
MakeTensor = Callable[[str, Array, str], Tensor]


def encode(obj: Any) -> tuple[str, dict[str, Array]]:
    """The structure of an object as text, and its tensors by name.

    Raises:
        TypeError: it holds something that cannot be stored; the message says where.
        ValueError: it contains itself, or is nested too deep.
    """
    arrays: dict[str, Array] = {}
    structure = _encode(obj, "", arrays, ())
    return json.dumps(structure), arrays


def decode(text: str, arrays: Mapping[str, Array], make_tensor: MakeTensor) -> Any:
    """The inverse of `encode`.

    Raises:
        ValueError: the text is none that `encode` writes.
    """
    try:
        node = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"load: the metadata 'plugrad' is no valid JSON: {error}") from error
    return _decode(node, "", 0, arrays, make_tensor)


def _encode(
    value: Any, path: str, arrays: dict[str, Array], outer: tuple[int, ...]
) -> dict[str, Any]:
    """The node for `value`, which is inside the containers with the ids `outer`."""
    if isinstance(value, Tensor):
        return _encode_tensor(value, path or "tensor", arrays)
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": _plain(value, path)}
    if not isinstance(value, Mapping | list | tuple):
        hint = "; save its state_dict()" if hasattr(value, "state_dict") else ""
        raise TypeError(
            "save: expected tensors, dicts, lists, tuples, numbers, str or None, "
            f"got {type(value).__name__} at {_place(path)}{hint}"
        )
    if id(value) in outer:
        raise ValueError(f"save: the {type(value).__name__} at {_place(path)} contains itself")
    if len(outer) == DEEPEST:
        raise ValueError(f"save: nested more than {DEEPEST} levels deep at {_place(path)}")
    outer = (*outer, id(value))
    if isinstance(value, Mapping):
        items = []
        for key, item in value.items():
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise TypeError(
                    f"save: dict keys must be str or int, got {type(key).__name__} "
                    f"at {_place(path)}"
                )
            items.append([_plain(key, path), _encode(item, _join(path, key), arrays, outer)])
        return {"dict": items}
    kind = "list" if isinstance(value, list) else "tuple"
    return {kind: [_encode(item, _join(path, i), arrays, outer) for i, item in enumerate(value)]}


def _encode_tensor(tensor: Tensor, path: str, arrays: dict[str, Array]) -> dict[str, Any]:
    # Names are UTF-8, which has no lone surrogates.
    name = path.encode("utf-8", "backslashreplace").decode()
    while name in arrays or name == RESERVED_NAME:
        name += "_"
    try:
        # The library writes memory in its current order.
        array = np.asarray(tensor.numpy(force=True), order="C")
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise TypeError(f"save: the tensor at {path} cannot be stored: {error}") from error
    node: dict[str, Any] = {"tensor": name}
    if array.dtype == np.complex128:
        # The format stops at complex64: stored as pairs of float64.
        node["complex128"] = True
        array = np.stack([array.real, array.imag], axis=-1)
    if tensor.requires_grad:
        node["requires_grad"] = True
    if tensor.device.type != "cpu":
        node["device"] = str(tensor.device)
    arrays[name] = array
    return node


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, int):
        try:
            str(value)
        except ValueError as error:
            raise ValueError(f"save: the int at {_place(path)} is too long: {error}") from error
    return value


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _place(path: str) -> str:
    if len(path) > 200:
        return f"{path[:100]}...{path[-60:]}"
    return path or "the top"


def _decode(
    node: Any, path: str, depth: int, arrays: Mapping[str, Array], make_tensor: MakeTensor
) -> Any:
    if not isinstance(node, dict):
        raise _broken(path, f"expected an object, got {_shown(node)}")
    if depth > DEEPEST:
        raise _broken(path, f"nested more than {DEEPEST} levels deep")
    if "tensor" in node:
        return _decode_tensor(node, path, arrays, make_tensor)
    if "dict" in node:
        found = {}
        for item in _list_of(node, "dict", path):
            if not isinstance(item, list) or len(item) != 2:
                raise _broken(path, f"expected a pair of key and value, got {_shown(item)}")
            key = item[0]
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise _broken(path, f"dict keys must be str or int, got {_shown(key)}")
            found[key] = _decode(item[1], _join(path, key), depth + 1, arrays, make_tensor)
        return found
    for kind in ("list", "tuple"):
        if kind in node:
            items = [
                _decode(item, _join(path, i), depth + 1, arrays, make_tensor)
                for i, item in enumerate(_list_of(node, kind, path))
            ]
            return items if kind == "list" else tuple(items)
    if "value" not in node:
        raise _broken(path, f"expected tensor, dict, list, tuple or value, got {_shown(node)}")
    value = node["value"]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise _broken(path, f"expected a number, str or None, got {_shown(value)}")


def _decode_tensor(
    node: dict[str, Any], path: str, arrays: Mapping[str, Array], make_tensor: MakeTensor
) -> Tensor:
    name, device = node["tensor"], node.get("device", "cpu")
    if not isinstance(name, str) or name not in arrays:
        raise _broken(path, f"there is no tensor {_shown(name)} in the file")
    if not isinstance(device, str):
        raise _broken(path, f"expected the name of a device, got {_shown(device)}")
    array = arrays[name]
    if node.get("complex128"):
        if array.dtype != np.float64 or array.ndim == 0 or array.shape[-1] != 2:
            raise _broken(
                path,
                f"expected pairs of float64 for complex128, got {array.dtype} of shape "
                f"{array.shape}",
            )
        array = array.view(np.complex128).reshape(array.shape[:-1])
    tensor = make_tensor(name, array, device)
    if not node.get("requires_grad"):
        return tensor
    try:
        return tensor.requires_grad_()
    except RuntimeError as error:
        raise _broken(path, str(error)) from error


def _list_of(node: dict[str, Any], kind: str, path: str) -> list[Any]:
    items = node[kind]
    if not isinstance(items, list):
        raise _broken(path, f"expected an array of the items of a {kind}, got {_shown(items)}")
    return items


def _broken(path: str, what: str) -> ValueError:
    return ValueError(f"load: the metadata 'plugrad' is broken at {_place(path)}: {what}")


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return type(value).__name__
    return text if len(text) < 60 else f"{text[:57]}..."
