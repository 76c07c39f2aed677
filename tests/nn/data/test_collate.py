"""Collation and conversion beside PyTorch's, for all kinds of containers."""

from __future__ import annotations

import types
from collections import ChainMap, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.utils.data._utils.collate import collate, default_collate_fn_map

Point = namedtuple("Point", ["x", "y"])


class Tagged(dict[str, Any]):
    """A mapping that holds something else."""

    tag = "none"


def tagged(**values: Any) -> Tagged:
    made = Tagged(values)
    made.tag = "mine"
    return made


SAMPLES: dict[str, Callable[[Any], list[Any]]] = {
    "ints": lambda lib: [1, 2],
    "bools": lambda lib: [True, False],
    "floats": lambda lib: [1.5, 2.0],
    "numbers of NumPy": lambda lib: [np.float32(1), np.float32(2)],
    "doubles of NumPy": lambda lib: [np.float64(1), np.float64(2)],
    "ints of NumPy": lambda lib: [np.int16(1), np.int16(2)],
    "bools of NumPy": lambda lib: [np.bool_(True), np.bool_(False)],
    "arrays": lambda lib: [np.arange(3), np.arange(3)],
    "arrays of no dimension": lambda lib: [np.array(1.0), np.array(2.0)],
    "arrays of text": lambda lib: [np.array(["a"]), np.array(["b"])],
    "tensors": lambda lib: [lib.ones(2, 3), lib.zeros(2, 3)],
    "tensors of two dtypes": lambda lib: [lib.ones(2), lib.ones(2, dtype=lib.int64)],
    "text": lambda lib: ["a", "b"],
    "bytes": lambda lib: [b"a", b"b"],
    "tuples": lambda lib: [(1, "a"), (2, "b")],
    "lists": lambda lib: [[1, 2.0], [3, 4.0]],
    "lists of two lengths": lambda lib: [[1], [1, 2]],
    "named tuples": lambda lib: [Point(1, "a"), Point(2, "b")],
    "dicts": lambda lib: [{"a": 1, "b": {"c": 2.0}}, {"a": 3, "b": {"c": 4.0}}],
    "ordered dicts": lambda lib: [OrderedDict(b=1, a=2), OrderedDict(a=3, b=4)],
    "default dicts": lambda lib: [defaultdict(int, a=1), defaultdict(int, a=2)],
    "a subclass of dict": lambda lib: [tagged(a=1), tagged(a=2)],
    "user dicts": lambda lib: [UserDict(a=1), UserDict(a=2)],
    "user lists": lambda lib: [UserList([1, "a"]), UserList([2, "b"])],
    "chain maps": lambda lib: [ChainMap({"a": 1}, {"b": 2}), ChainMap({"a": 3}, {"b": 4})],
    "read-only mappings": lambda lib: [types.MappingProxyType({"a": 1})] * 2,
    "ranges": lambda lib: [range(2), range(2)],
    "deques": lambda lib: [deque([1, 2]), deque([3, 4])],
    "a missing key": lambda lib: [{"a": 1}, {"b": 1}],
    "objects": lambda lib: [None, None],
    "nothing": lambda lib: [],
    "NumPy's text": lambda lib: [np.str_("a"), np.str_("b")],
}


def described(found: Any) -> Any:
    """Classes and values, without the class of the library."""
    if hasattr(found, "tolist") and not isinstance(found, np.ndarray | np.generic):
        return str(found.dtype).partition(".")[2], found.tolist()
    if isinstance(found, np.ndarray):
        return "array", found.tolist()
    if isinstance(found, Mapping):
        values = {key: described(value) for key, value in found.items()}
        return type(found), values, list(found), getattr(found, "tag", None)
    if isinstance(found, list | tuple | UserList | deque):
        return type(found), [described(value) for value in found]
    return type(found), found


def outcome(function: Callable[[Any], Any], given: Any) -> Any:
    try:
        return described(function(given))
    except Exception as error:
        return type(error), str(error).replace("torch.", "plugrad.")


@pytest.mark.parametrize("kind", SAMPLES)
def test_default_collate_is_pytorchs(kind: str, torch: Any) -> None:
    own, expected = (
        outcome(lib.utils.data.default_collate, SAMPLES[kind](lib)) for lib in (plugrad, torch)
    )
    if isinstance(own[0], type) and issubclass(own[0], Exception):
        assert own[0] is expected[0]
        if own[0] is not KeyError and "dtypes" not in kind:
            assert own == expected
    else:
        assert own == expected


@pytest.mark.parametrize("kind", SAMPLES)
def test_default_convert_is_pytorchs(kind: str, torch: Any) -> None:
    own, expected = (
        outcome(lib.utils.data.default_convert, SAMPLES[kind](lib)) for lib in (plugrad, torch)
    )
    assert own == expected


def test_tensors_of_two_shapes_name_both(torch: Any) -> None:
    for lib in (plugrad, torch):
        with pytest.raises(RuntimeError, match=r"got \[2\] at entry 0 and \[3\] at entry 1"):
            lib.utils.data.default_collate([lib.ones(2), lib.ones(3)])


def test_a_class_of_the_users_is_collated_by_its_function() -> None:
    class Image:
        def __init__(self, size: int) -> None:
            self.size = size

    class Photo(Image):
        pass

    def collate_images(batch: Any, *, collate_fn_map: Any = None) -> Any:
        return ("images", collate([image.size for image in batch], collate_fn_map=collate_fn_map))

    functions = {Image: collate_images, **default_collate_fn_map}
    kind, sizes = collate([{"x": Photo(3)}, {"x": Photo(4)}], collate_fn_map=functions)["x"]
    assert (kind, sizes.tolist()) == ("images", [3, 4])
    default_collate_fn_map[Image] = collate_images
    try:
        assert plugrad.utils.data.default_collate([Image(1)])[0] == "images"
    finally:
        del default_collate_fn_map[Image]
