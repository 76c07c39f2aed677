"""One module on several devices of a backend: each computes a part of the batch.

The parts are computed one after another, and devices that work asynchronously overlap. Gradients
of all parts arrive at the parameters of the module itself.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.module import Module
from plugrad_nn.processes import distributed_package

__all__ = ["data_parallel", "gather", "parallel_apply", "replicate", "scatter"]

if TYPE_CHECKING:
    # Loaded at first use, because it is in another package: see `__getattr__`.
    from plugrad_distributed.data_parallel import distributed as _data_parallel

    DistributedDataParallel = _data_parallel.DistributedDataParallel
    __all__ += ["DistributedDataParallel"]

M = TypeVar("M", bound=Module)


def devices_of(places: Sequence[Any], type_: str) -> list[plugrad.device]:
    """Devices from names, devices and numbers; the numbers are indices of `type_`."""
    named = [f"{type_}:{place}" if isinstance(place, int) else place for place in places]
    # The canonical form, as tensors report it.
    return [plugrad.empty(0, device=place).device for place in named]


def device_type_of(values: Any) -> str:
    """The type of device of the first tensor in a nest of containers; "cpu" without one."""
    if isinstance(values, Tensor):
        return values.device.type
    inner = values.values() if isinstance(values, Mapping) else values
    if isinstance(inner, (list, tuple)) or isinstance(values, Mapping):
        found = [device_type_of(value) for value in inner]
        return next((each for each in found if each != "cpu"), "cpu")
    return "cpu"


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Cuts all tensors of a nest into as many pieces as there are devices, along a dimension.

    Args:
        inputs: tensors, in lists, tuples and dicts; anything else goes to every device unchanged.
        target_gpus: devices, or their numbers.
        dim: along which tensors are cut.

    Returns:
        A tuple or list of nests, one for each device that got a piece.

    >>> import plugrad
    >>> from plugrad.nn.parallel import scatter
    >>> scatter((plugrad.arange(4), "x"), ["cpu", "cpu"])
    [(tensor([0, 1]), 'x'), (tensor([2, 3]), 'x')]
    """
    devices = devices_of(target_gpus, device_type_of(inputs))

    def cut(value: Any) -> Any:
        if isinstance(value, Tensor):
            pieces = value.chunk(len(devices), dim)
            return tuple(piece.to(device) for piece, device in zip(pieces, devices, strict=False))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*parts) for parts in zip(*map(cut, value), strict=False)]
        if isinstance(value, tuple) and value:
            return list(zip(*map(cut, value), strict=False))
        if isinstance(value, list) and value:
            return [list(parts) for parts in zip(*map(cut, value), strict=False)]
        if isinstance(value, dict) and value:
            return [
                type(value)(zip(value, parts, strict=True))
                for parts in zip(*map(cut, value.values()), strict=False)
            ]
        return [value for _ in devices]

    return cut(inputs)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Concatenates results of several devices along a dimension, on one device.

    Tensors of no dimension are joined to a vector, with a warning. Lists, tuples and dicts are
    joined element by element.

    Raises:
        ValueError: dicts of several devices have other keys.

    >>> import plugrad
    >>> from plugrad.nn.parallel import gather
    >>> gather([{"y": plugrad.ones(1)}, {"y": plugrad.zeros(2)}], "cpu")
    {'y': tensor([1., 0., 0.])}
    """
    (device,) = devices_of([target_device], device_type_of(outputs))
    first = outputs[0]
    if isinstance(first, Tensor):
        if all(output.dim() == 0 for output in outputs) and dim == 0:
            warnings.warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; will "
                "instead unsqueeze and return a vector.",
                stacklevel=2,
            )
            outputs = [output.unsqueeze(0) for output in outputs]
        return plugrad.cat([output.to(device) for output in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(first.keys() != output.keys() for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)(
            (key, gather([output[key] for output in outputs], device, dim)) for key in first
        )
    parts = [gather(list(each), device, dim) for each in zip(*outputs, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)


def replicate(network: M, devices: Sequence[Any], detach: bool = False) -> list[M]:
    """Copies of a module, one on each device.

    The copies' parameters are computed from the module's, unless `detach`, so gradients reach the
    module. Buffers are copied.

    >>> import plugrad
    >>> net = plugrad.nn.Linear(2, 1)
    >>> first, second = plugrad.nn.parallel.replicate(net, ["cpu", "cpu"])
    >>> (first(plugrad.ones(1, 2)) + second(plugrad.ones(1, 2))).sum().backward()
    >>> net.bias.grad
    tensor([2.])
    """
    first = next(network.parameters(), None)
    kind = device_type_of(first)
    return [_replica(network, device, detach, {}, {}) for device in devices_of(devices, kind)]


def _replica(
    module: Any, device: Any, detach: bool, made: dict[int, Any], moved: dict[int, Tensor]
) -> Any:
    """A copy with its members on a device; shared tensors stay shared."""
    if id(module) in made:
        return made[id(module)]
    replica = module._replicate_for_data_parallel()
    made[id(module)] = replica

    def on_device(tensor: Tensor | None, detach: bool) -> Tensor | None:
        if tensor is None:
            return None
        if id(tensor) not in moved:
            source = tensor.detach() if detach else tensor
            here = source.to(device)
            # Not the parameter itself, nor a buffer that is written to.
            moved[id(tensor)] = here.clone() if here is source or detach else here
        return moved[id(tensor)]

    for name, parameter in module._parameters.items():
        replica._parameters[name] = on_device(parameter, detach)
    for name, buffer in module._buffers.items():
        replica._buffers[name] = on_device(buffer, True)
    for name, child in module._modules.items():
        replica._modules[name] = (
            None if child is None else _replica(child, device, detach, made, moved)
        )
    return replica


def parallel_apply(
    modules: Sequence[Any],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Calls each module with its own inputs, a tuple or a single value, and its own keywords.

    Raises:
        AssertionError: there are not as many inputs as modules.

    >>> import plugrad
    >>> relu, tanh = plugrad.nn.ReLU(), plugrad.nn.Tanh()
    >>> plugrad.nn.parallel.parallel_apply([relu, tanh], [plugrad.ones(1), (plugrad.zeros(1),)])
    [tensor([1.]), tensor([0.])]
    """
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    keywords = kwargs_tup or [{}] * len(modules)
    return [
        module(*(given if isinstance(given, (list, tuple)) else (given,)), **named)
        for module, given, named in zip(modules, inputs, keywords, strict=True)
    ]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Calls a module on several devices, each with a part of the inputs, and joins the outputs.

    Args:
        inputs: a tensor, or a tuple of the arguments.
        device_ids: devices, or their numbers; without them the module is called itself.
        output_device: where the outputs are joined, the first device by default.
        dim: along which tensors are cut and joined.
        module_kwargs: arguments by name.

    Raises:
        RuntimeError: a parameter or buffer is not on the first device.

    >>> import plugrad
    >>> net = plugrad.nn.Linear(2, 3)
    >>> plugrad.nn.parallel.data_parallel(net, plugrad.ones(4, 2), ["cpu", "cpu"]).shape
    plugrad.Size([4, 3])
    """
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    keywords = module_kwargs or {}
    if not device_ids:
        return module(*arguments, **keywords)
    devices = devices_of(device_ids, device_type_of([*module.parameters(), *arguments]))
    for tensor in [*module.parameters(), *module.buffers()]:
        if tensor.device != devices[0]:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {devices[0]} "
                f"(device_ids[0]) but found one of them on device: {tensor.device}"
            )
    places = scatter(arguments, devices, dim) if arguments else []
    named = scatter(keywords, devices, dim) if keywords else []
    used = max(len(places), len(named), 1)
    places = [*places, *((),) * (used - len(places))]
    named = [*named, *({},) * (used - len(named))]
    if used == 1 or len(devices) == 1:
        return module(*places[0], **named[0])
    replicas = replicate(module, devices[:used])
    outputs = parallel_apply(replicas, places, named)
    return gather(outputs, devices[0] if output_device is None else output_device, dim)


def __getattr__(name: str) -> Any:
    if name != "DistributedDataParallel":
        raise AttributeError(f"module 'plugrad.nn.parallel' has no attribute {name!r}")
    if distributed_package() is None:
        raise ImportError(
            "plugrad.nn.parallel.DistributedDataParallel is in a package of its own: "
            "pip install plugrad-distributed"
        )
    module = importlib.import_module("plugrad_distributed.data_parallel.distributed")
    globals()[name] = module.DistributedDataParallel
    return globals()[name]
