"""Where a program runs: the functions that its statements call, and a record of what happens."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from plugrad.testing.random_programs.functions import make_functions
from plugrad.testing.random_programs.program import Program

Event = tuple[int, str, Any]  # the statement's position, what happened, values

# `.grad` of a tensor that does not keep one, backward with create_graph: both warn, as PyTorch.
_EXPECTED_WARNINGS = (UserWarning,)


class Stage:
    """Names for the statements of a program, bound to one library.

    Attributes:
        names: what statements may call, by name.
        events: what happened, in order: hooks called, gradients seen, errors raised.

    Args:
        lib: `plugrad` or `torch`.
        devices: the results of `device(i)`, by `i` modulo their number.
        nudge: the relative change of values from their usual ones.
        functions: whether custom Functions are available.
    """

    def __init__(
        self,
        lib: Any,
        devices: tuple[str, ...] = ("cpu",),
        nudge: float = 0.0,
        functions: bool = True,
    ) -> None:
        self.lib = lib
        self.nudge = nudge
        self.devices = devices
        self.events: list[Event] = []
        self.position = 0
        self.names: dict[str, Any] = {
            "lib": lib,
            "leaf": self.leaf,
            "values": self.values,
            "device": self.device,
            "hook": self.hook,
            "post_hook": self.post_hook,
            "node_hook": self.node_hook,
            "node_prehook": self.node_prehook,
            "multi_hook": self.multi_hook,
            "look": self.look,
            "pack": self.pack,
            "unpack": self.unpack,
            **(make_functions(lib, self.log) if functions else {}),
        }

    def log(self, what: str, value: Any) -> None:
        self.events.append((self.position, what, describe(value)))

    # Tensors.

    def device(self, index: int) -> str:
        return self.devices[index % len(self.devices)]

    def values(self, shape: tuple[int, ...], dtype: str, seed: int, device: int = 0) -> Any:
        """A tensor with values drawn from `seed`."""
        array = _drawn(shape, dtype, seed)
        if self.nudge and array.dtype.kind in "fc":
            array = array * (1.0 + self.nudge)
        made = self.lib.tensor(np.asarray(array, dtype).tolist(), dtype=getattr(self.lib, dtype))
        return made if self.device(device) == "cpu" else made.to(self.device(device))

    def leaf(
        self, shape: tuple[int, ...], dtype: str, seed: int, requires_grad: bool, device: int = 0
    ) -> Any:
        return self.values(shape, dtype, seed, device).requires_grad_(requires_grad)

    # Hooks.

    def hook(self, name: str, kind: str = "look") -> Any:
        """A hook for a tensor: one that looks, replaces the gradient, fails, or runs a pass."""

        def run(grad: Any) -> Any:
            self.log(name, grad)
            if kind == "replace":
                return grad * 2.0
            if kind == "fail":
                raise ValueError(f"a fault in {name}")
            if kind == "nested":
                with self.lib.enable_grad():
                    inner = grad.detach().requires_grad_()
                    (inner * inner).sum().abs().backward()
                self.log(f"{name} nested", inner.grad)
            return None

        return run

    def post_hook(self, name: str, clear: bool = False) -> Any:
        def run(tensor: Any) -> None:
            self.log(name, tensor.grad)
            if clear:
                tensor.grad = None

        return run

    def node_hook(self, name: str, replace: bool = False) -> Any:
        def run(inputs: Any, outputs: Any) -> Any:
            self.log(f"{name} inputs", [grad for grad in inputs if grad is not None])
            self.log(f"{name} outputs", outputs)
            if replace:
                return tuple(None if grad is None else grad * 3.0 for grad in inputs)
            return None

        return run

    def node_prehook(self, name: str, replace: bool = False) -> Any:
        def run(outputs: Any) -> Any:
            self.log(name, outputs)
            if replace:
                return tuple(None if grad is None else grad * 0.5 for grad in outputs)
            return None

        return run

    def multi_hook(self, name: str) -> Any:
        def run(grads: Any) -> None:
            self.log(name, grads)

        return run

    def look(self, name: str, tensor: Any) -> None:
        """Note a tensor's place in the graph now."""
        self.log(name, [tensor.requires_grad, tensor.is_leaf, tensor.grad_fn is None, tensor])

    def pack(self, tensor: Any) -> Any:
        return tensor.detach().clone()

    def unpack(self, packed: Any) -> Any:
        return packed


@cache
def _drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype.startswith(("int", "bool")):
        return np.asarray(
            rng.integers(0, 2, shape) if dtype == "bool" else rng.integers(-3, 4, shape)
        )
    array = rng.uniform(0.25, 1.25, shape) * rng.choice([-1.0, 1.0], shape)
    return array + 1j * rng.uniform(-1.0, 1.0, shape) if dtype.startswith("complex") else array


def describe(value: Any) -> Any:
    """A value as plain data: a tensor as its dtype, flags and elements, an object by its kind."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [describe(item) for item in value]
    if not hasattr(value, "requires_grad"):
        return type(value).__name__
    requires_grad = value.requires_grad
    value = value.detach().cpu()
    if hasattr(value, "resolve_conj"):  # PyTorch conjugates and negates lazily
        value = value.resolve_conj().resolve_neg()
    if hasattr(value, "_is_zerotensor") and value._is_zerotensor():
        value = value.clone()
    # A copy: the tensor may be written to later.
    array = np.array(value.numpy())
    dtype = str(value.dtype).partition(".")[2]
    return (dtype, requires_grad, array)


def describe_tensor(tensor: Any, with_memory: bool) -> Any:
    """All that can be seen of a tensor; of its memory only on demand."""
    return {
        "view": with_memory and tensor._is_view(),
        "version": tensor._version if with_memory else 0,
        "value": describe(tensor),
        "shape": tuple(tensor.shape),
        "is_leaf": tensor.is_leaf,
        "grad_fn is None": tensor.grad_fn is None,
        "output_nr": tensor.output_nr,
        "retains_grad": tensor.retains_grad,
        "inference": tensor.is_inference(),
        "grad": describe(tensor.grad),
    }


def run_program(
    program: Program, lib: Any, devices: tuple[str, ...] = ("cpu",), nudge: float = 0.0
) -> tuple[list[Event], dict[str, Any]]:
    """Run a program: what happened, and what all its variables are in the end.

    A statement that raises is noted, and the program goes on.
    """
    applies = any(".apply(" in statement.text for statement in program.statements)
    stage = Stage(lib, devices, nudge, applies)
    names = dict(stage.names)
    with warnings.catch_warnings():
        for category in _EXPECTED_WARNINGS:
            warnings.simplefilter("ignore", category)
        for position, statement in enumerate(program.statements):
            stage.position = position
            if any(names.get(name) is None for name in statement.uses):
                stage.log("passed over", None)
                continue
            try:
                exec(statement.text, names)
            except Exception as error:
                stage.events.append((position, "raised", (type(error).__name__, str(error))))
        inner = _with_inner_memory(program)
        variables = [name for name in names if name[0] in "vgw" and name[1:].isdigit()]
        final = {name: _final(names[name], name not in inner) for name in variables}
        for name, seen in final.items():
            if name[0] == "g" and isinstance(seen, dict):
                del seen["output_nr"]  # which output of its node a gradient is says the formula
        return stage.events, final


def _with_inner_memory(program: Program) -> set[str]:
    """Variables that were made by operators which the user does not call, or from such.

    How often a gradient was written to, and whether it is a view, is the formulas' affair; kernels
    write to inference tensors as they like.
    """
    found: set[str] = set()
    for statement in program.statements:
        names = {*statement.uses, *statement.defines}
        if any(name in found or name[0] in "gw" for name in names) or "inference" in statement.text:
            found |= names
    return found


def _final(value: Any, with_memory: bool) -> Any:
    if not hasattr(value, "requires_grad"):
        return describe(value)
    try:
        return describe_tensor(value, with_memory)
    except RuntimeError as error:
        # A view that cannot follow its base says so when its grad_fn is requested.
        return (type(error).__name__, str(error))
