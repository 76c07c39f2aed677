"""State dicts as flat tables: a name for each tensor and each plain value in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping, MutableSequence
from typing import Any, Protocol, runtime_checkable

from plugrad import Tensor
from plugrad_distributed.distributed.checkpoint.errors import CheckpointError

__all__ = ["Stateful", "check_plain", "entries", "is_stateful", "replace"]


@runtime_checkable
class Stateful(Protocol):
    """An object with its own state: modules, optimizers, and users' classes.

    >>> import tempfile, plugrad
    >>> from plugrad.distributed import checkpoint
    >>> class Counter:
    ...     steps = 0
    ...
    ...     def state_dict(self):
    ...         return {"steps": self.steps}
    ...
    ...     def load_state_dict(self, state_dict):
    ...         self.steps = state_dict["steps"]
    >>> folder = tempfile.TemporaryDirectory()
    >>> before, after = Counter(), Counter()
    >>> before.steps = 3
    >>> checkpoint.save({"counter": before}, checkpoint_id=folder.name)
    >>> checkpoint.load({"counter": after}, checkpoint_id=folder.name)
    >>> after.steps
    3
    """

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


# The keys that lead to an entry, outermost first.
Path = tuple[str | int, ...]


def entries(state: MutableMapping[str, Any]) -> Iterator[tuple[str, Path, Any]]:
    """The tensors and plain values of a state dict, each with its name and path.

    Raises:
        TypeError: it is not a state dict, or has keys that are neither str nor int.
        ValueError: two entries have the same name, as {"a.b": 1} and {"a": {"b": 1}}.
    """
    if not isinstance(state, MutableMapping):
        raise TypeError(f"state_dict must be a dict, got {type(state).__name__}")
    seen: set[str] = set()
    for path, value in _walk(state, ()):
        name = ".".join(map(str, path))
        if name in seen:
            raise ValueError(f"state_dict has two entries named {name!r}")
        seen.add(name)
        yield name, path, value


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, MutableMapping):
        for key, item in value.items():
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise TypeError(
                    f"keys of state_dict must be str or int, got {type(key).__name__} at "
                    f"{'.'.join(map(str, path)) or 'the top'!r}"
                )
            yield from _walk(item, (*path, key))
    elif isinstance(value, MutableSequence) and any(_holds_tensors(item) for item in value):
        for number, item in enumerate(value):
            yield from _walk(item, (*path, number))
    else:
        yield path, value


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, MutableMapping):
        return any(map(_holds_tensors, value.values()))
    if isinstance(value, MutableSequence | tuple):
        return any(map(_holds_tensors, value))
    return isinstance(value, Tensor)


def is_stateful(value: Any) -> bool:
    """Whether a value has its own state, as modules and optimizers do."""
    return (
        not isinstance(value, Tensor)
        and callable(getattr(value, "state_dict", None))
        and callable(getattr(value, "load_state_dict", None))
    )


def replace(state: Any, path: Path, value: Any) -> None:
    """Replace the value at a path."""
    for key in path[:-1]:
        state = state[key]
    state[path[-1]] = value


def check_plain(name: str, value: Any) -> Any:
    """A plain value in a form for JSON: None, numbers, strings, and lists, tuples and dicts of
    these.

    Raises:
        TypeError: it has another type; the message names it.
    """
    try:
        found = _plain(value)
        json.dumps(found)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"state_dict[{name!r}] must be a tensor, a number, a string, None, or a list, tuple or "
            f"dict of these: {error}"
        ) from None
    return found


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_plain(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
    raise TypeError(f"it holds a {type(value).__name__}")


def from_plain(value: Any) -> Any:
    """The inverse of `check_plain`.

    Raises:
        CheckpointError: `check_plain` does not produce such a value.
    """
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"tuple"}:
            return tuple(from_plain(item) for item in value["tuple"])
        if set(value) == {"dict"}:
            return {from_plain(key): from_plain(item) for key, item in value["dict"]}
        raise CheckpointError(f"the index holds a value of an unknown kind: {list(value)}")
    return value
