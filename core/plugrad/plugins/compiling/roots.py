"""What a function can reach: modules, optimizers, tensors and plain values.

They are found through the function's closure, the globals that it names, the object it is a method
of, and its arguments. Objects are listed in the order in which they are found. If two walks give
the same signature, they can use the same program, with the tensors of the later walk.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np

from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.exchange import arrays_of, put_arrays
from plugrad.tensor.guards import SameObjects

PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), DType, type(...))
# What code of these packages does, it does for the user.
LIBRARIES: Final = frozenset(
    (
        *("builtins", "functools", "collections", "contextlib", "jax", "jaxlib", "numpy", "optree"),
        *("plugrad", "plugrad_cpu", "plugrad_cuda", "plugrad_jax", "plugrad_distributions"),
        *(
            "plugrad_distributed",
            "plugrad_nn",
            "plugrad_special",
            "plugrad_as_torch",
            "plugrad_viewer",
        ),
    )
)
MAX_DEPTH: Final = 6
MANY: Final = 256


def is_module(value: object) -> bool:
    """Whether it is a `plugrad.nn.Module`, or looks like one."""
    fields = getattr(value, "__dict__", None)
    return type(fields) is dict and "_parameters" in fields and "_modules" in fields


def is_optimizer(value: object) -> bool:
    """Whether it is a `plugrad.optim.Optimizer`, or looks like one."""
    fields = getattr(value, "__dict__", None)
    return type(fields) is dict and "param_groups" in fields and "state" in fields


def number_of(value: Any) -> Any:
    """A count in an optimizer's state as a number: some keep it as a 0-dim tensor on the host."""
    if not isinstance(value, TensorBase):
        return value
    array = value._backend_array
    if type(array) is np.ndarray:  # a count on the host: quicker than the operator
        return array.item()
    tensor: Any = value
    return tensor.item()


class Number:
    """A number of an optimizer that steps do not depend on by its value: a learning rate, a count.

    Args:
        places: dicts and keys where the number is, all of one value.
    """

    def __init__(self, places: list[tuple[dict[str, Any], str]]) -> None:
        self.places = places
        # By how much a run makes a count grow.
        self.grows = 0

    def known(self) -> Any:
        """What the number is; None if the places no longer agree."""
        holder, key = self.places[0]
        value = number_of(holder[key])
        if len(self.places) > 1:
            for holder, key in self.places:
                if number_of(holder[key]) != value:
                    return None
        return value

    def store(self, value: Any) -> None:
        """Put another value into all places, which stay what they are: numbers or tensors."""
        written: list[TensorBase] = []
        for holder, key in self.places:
            known = holder[key]
            if not isinstance(known, TensorBase):
                holder[key] = value
            elif type(known._backend_array) is np.ndarray:
                known._backend_array.fill(value)
                written.append(known)
            else:
                tensor: Any = known
                tensor.fill_(value)
        put_arrays(written, arrays_of(written), [1] * len(written))


class Roots:
    """Everything that was found.

    Args:
        number: makes the `Number` of places, if that needs more than the core's.

    Attributes:
        signature: a name and what tracing depends on, for everything that was found.
        tensors: the tensors, each once.
        names: what to call a tensor in a message, by id.
        holders: the dicts and lists into which the step may put other objects, with their names.
        optimizers: the optimizers.
        options: the numbers of optimizers' groups, in order.
        counts: the counts in the states of parameters, by value.
        code_names: the names that the step's code uses.
    """

    def __init__(self, number: Callable[[list[Any]], Any] = Number) -> None:
        self._number = number
        self.signature: list[tuple[str, Any]] = []
        self.tensors: list[Any] = []
        self.names: dict[int, str] = {}
        self.holders: list[tuple[str, Any]] = []
        self.optimizers: list[Any] = []
        self.options: list[Any] = []
        self.counts: dict[Any, Any] = {}
        self.code_names: list[str] = []
        self._seen: set[int] = set()
        # What `same_objects` looks at.
        self._dicts: list[dict[Any, Any]] = []
        self._lists: list[Any] = []
        self._cells: list[Any] = []
        self._places: list[tuple[dict[Any, Any], Any]] = []

    def seal(self) -> None:
        """Record where the objects are."""
        walked = {*map(id, self._dicts), *map(id, self._lists)}
        sized = [holder for _, holder in self.holders if id(holder) not in walked]
        # Whether every object is where it was found; otherwise the search must run again.
        self.same_objects = SameObjects(
            self._dicts, self._lists, self._places, self._cells, sized
        ).hold

    def numbers(self) -> list[Any]:
        """The numbers of optimizers."""
        return [*self.options, *self.counts.values()]

    def all_holders(self) -> list[Any]:
        """The dicts and lists into which the step may put other objects."""
        return [holder for _, holder in self.holders]

    # Walking

    def add(self, value: Any, name: str, depth: int = 0) -> None:
        """Look at something that the step can reach."""
        if isinstance(value, TensorBase):
            self._add_tensor(value, name)
        elif isinstance(value, PLAIN):
            self.signature.append((name, (type(value), value)))
        elif is_optimizer(value):
            self._once(value, name, self._add_optimizer)
        elif is_module(value):
            self._once(value, name, self._add_module)
        elif depth > MAX_DEPTH:
            self.signature.append((name, id(value)))
        elif isinstance(value, (dict, list, tuple)):
            if len(value) > MANY and not _is_state(value):
                self.signature.append((name, id(value)))  # data, and no state
                return
            self._once(value, name, functools.partial(self._add_container, depth=depth))
        elif isinstance(value, functools.partial):
            self.add(value.func, name, depth + 1)
            self.add(value.args, f"{name}.args", depth + 1)
            self.add(value.keywords, f"{name}.keywords", depth + 1)
        elif isinstance(value, types.MethodType):
            self.add(value.__func__, name, depth + 1)
            self.add(value.__self__, f"{name}.__self__", depth + 1)
        elif isinstance(value, types.FunctionType):
            # The step itself may come from a library, like the demo's; then its closure matters.
            if depth and _home(value.__module__) in LIBRARIES:
                self.signature.append((name, id(value)))
            else:
                self._once(value, name, functools.partial(self._add_function, depth=depth))
        elif _is_users(value):
            self._once(value, name, functools.partial(self._add_object, depth=depth))
        else:
            self.signature.append((name, id(value)))

    def _once(self, value: Any, name: str, look: Callable[[Any, str], None]) -> None:
        if id(value) in self._seen:
            self.signature.append((name, "seen"))
            return
        self._seen.add(id(value))
        look(value, name)

    def _add_tensor(self, tensor: Any, name: str) -> None:
        if id(tensor) in self.names:
            self.signature.append((name, self.names[id(tensor)]))
            return
        self.names[id(tensor)] = name
        self.tensors.append(tensor)
        about = (sizes_of(tensor), tensor.dtype, tensor.device, type(tensor))
        self.signature.append((name, about))

    def _hold(self, holder: Any, name: str) -> None:
        self.holders.append((name, holder))
        if isinstance(holder, dict):
            self._dicts.append(holder)
        elif isinstance(holder, list):
            self._lists.append(holder)

    def _add_container(self, value: Any, name: str, depth: int) -> None:
        self.signature.append((name, (type(value), len(value))))
        if not isinstance(value, tuple):
            self._hold(value, name)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            self.add(item, f"{name}[{key!r}]" if isinstance(key, (str, int)) else name, depth + 1)

    def _add_module(self, module: Any, name: str) -> None:
        fields = module.__dict__
        self.signature.append((name, type(module)))
        self._hold(fields, name)
        for table in ("_parameters", "_buffers", "_modules"):
            self._hold(fields[table], f"{name}.{table}")
            for key, item in fields[table].items():
                self.add(item, f"{name}.{key}")
        for key, item in fields.items():
            if key in ("_parameters", "_buffers", "_modules"):
                continue
            self.add(item, f"{name}.{key}", 1)
        forward = type(module).forward
        if isinstance(forward, types.FunctionType):
            self.add(forward, f"{name}.forward", 1)

    def _add_optimizer(self, optimizer: Any, name: str) -> None:
        self.optimizers.append(optimizer)
        self.signature.append((name, type(optimizer)))
        inputs: tuple[str, ...] = getattr(type(optimizer), "capturable_numbers", ())
        fields = optimizer.__dict__
        self._hold(fields, name)
        self._hold(optimizer.param_groups, f"{name}.param_groups")
        self._hold(optimizer.state, f"{name}.state")
        for key, item in fields.items():
            if key not in ("param_groups", "state", "defaults"):
                self.add(item, f"{name}.{key}", 1)
        for number, group in enumerate(optimizer.param_groups):
            place = f"{name}.param_groups[{number}]"
            self.holders.append((place, group))
            for key, item in group.items():
                if key in inputs and type(item) in (int, float):
                    self.options.append(self._number([(group, key)]))
                    self.signature.append((f"{place}[{key!r}]", "number"))
                else:
                    self._places.append((group, key))
                    self.add(item, f"{place}[{key!r}]", 1)
            for position, parameter in enumerate(group["params"]):
                state = optimizer.state.get(parameter)
                if state is not None:
                    what = f"{name}.state of {place}['params'][{position}]"
                    self._add_state(state, what, inputs, not group.get("capturable"))

    def _add_state(
        self, state: dict[str, Any], name: str, inputs: tuple[str, ...], waits: bool
    ) -> None:
        """`waits`: whether the update reads the value of a count that is a tensor."""
        self.holders.append((name, state))
        self.signature.append((name, len(state)))
        for key, item in state.items():
            if key in inputs and (_is_count(item) if waits else type(item) is int):
                count = number_of(item)
                number = self.counts.setdefault(count, self._number([]))
                number.places.append((state, key))
                self.signature.append((f"{name}[{key!r}]", list(self.counts).index(count)))
            else:
                self._places.append((state, key))
                self.add(item, f"{name}[{key!r}]", 1)

    def _add_object(self, value: Any, name: str, depth: int) -> None:
        """An object of the user's class: its state, and the attributes that the step uses."""
        self.signature.append((name, type(value)))
        fields = value.__dict__
        self.holders.append((name, fields))
        used = self._used_names(type(value))
        for key, item in list(fields.items()):
            # Plain values that the step's code names decide what is traced.
            if _is_state(item) or (key in used and isinstance(item, PLAIN)):
                self._places.append((fields, key))
                self.add(item, f"{name}.{key}", depth + 1)

    def _add_function(self, function: types.FunctionType, name: str, depth: int) -> None:
        self.signature.append((name, id(function.__code__)))
        for key, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                item = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            self._cells.append(cell)
            self.add(item, key, depth + 1)
        spaces = function.__globals__
        for key in _names(function.__code__):
            if key in spaces:
                self._places.append((spaces, key))
                self.add(spaces[key], key, depth + 1)
        owner = function.__defaults__, function.__kwdefaults__
        for item in chain(owner[0] or (), (owner[1] or {}).values()):
            self.add(item, f"{name}'s default", depth + 1)

    def _used_names(self, owner: type) -> set[str]:
        """The names in the step's code, and in methods of a class which that code names."""
        found = set(self.code_names)
        waiting = list(found)
        while waiting:
            method = getattr(owner, waiting.pop(), None)
            if isinstance(method, types.FunctionType):
                new = set(_names(method.__code__)) - found
                found |= new
                waiting += new
        return found


def _is_users(value: Any) -> bool:
    """Whether to look into an object: no class or module, and not from a listed library."""
    if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
        return False
    home = _home(type(value).__module__)
    if home in LIBRARIES and home != "plugrad_nn":  # which has schedules
        return False
    return type(getattr(value, "__dict__", None)) is dict


def _is_count(value: Any) -> bool:
    """Whether it is a number that grows with each step: Python's, or one that the host keeps."""
    if isinstance(value, TensorBase):
        return value.ndim == 0 and value.device.is_host
    return type(value) is int


def _home(module: str | None) -> str:
    """The package of a module."""
    return (module or "builtins").partition(".")[0]


def _is_state(value: Any) -> bool:
    """Whether it is, or holds, what a step may change."""
    if isinstance(value, TensorBase) or is_module(value) or is_optimizer(value):
        return True
    if isinstance(value, Mapping):
        return any(_is_state(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(_is_state(item) for item in value)
    return callable(value) or _is_users(value)


def _names(code: types.CodeType) -> list[str]:
    """The names that code and the functions in it use."""
    found = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _names(constant)
    return found


def find_roots(
    function: Callable[..., Any],
    arguments: Any,
    state: Any,
    number: Callable[[list[Any]], Any] = Number,
) -> Roots:
    """All that a call of a function can reach; `number` as for `Roots`."""
    roots = Roots(number)
    inner: Any = inspect.unwrap(function)
    while isinstance(inner, functools.partial):
        inner = inner.func
    code = getattr(inner, "__code__", None)  # a method has its function's
    roots.code_names = [] if code is None else _names(code)
    roots.add(function, getattr(function, "__name__", "step"))
    for position, item in enumerate(arguments):
        roots.add(item, f"argument {position}")
    roots.add(state, "state")
    roots.seal()
    return roots
