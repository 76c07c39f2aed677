"""Styles that only set the placements of a module's inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plugrad
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.functions import redistributed
from plugrad_distributed.tensor.parallel.styles import ParallelStyle, as_dtensor
from plugrad_distributed.tensor.placement import Placement

__all__ = ["PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput"]

Layouts = Placement | tuple[Placement | None, ...]


def _tuple(layouts: Layouts | None) -> tuple[Placement | None, ...] | None:
    return (layouts,) if isinstance(layouts, Placement) else layouts


def _prepared(
    value: Any,
    mesh: DeviceMesh,
    layout: Placement | None,
    desired: Placement | None,
    use_local: bool,
) -> Any:
    """A value as a DTensor with the desired placements; unchanged without a layout."""
    if layout is None or value is None:
        return value
    if not isinstance(value, plugrad.Tensor):
        raise TypeError(f"expecting input to be a plugrad.Tensor, but got {type(value).__name__}")
    found = as_dtensor(value, mesh, layout)
    if desired is not None:
        found = redistributed(found, (desired,))
    return found.to_local() if use_local else found


def _check_pair(given: Any, desired: Any, what: str) -> None:
    if given is None:
        return
    if desired is None:
        raise ValueError(f"desired_{what} must be given together with {what}, got None")
    if len(given) != len(desired):
        raise ValueError(
            f"{what} and desired_{what} should have same length! Got {len(given)} and "
            f"{len(desired)}"
        )


class PrepareModuleInput(ParallelStyle):
    """Turns a module's inputs into DTensors, and redistributes them.

    Args:
        input_layouts: the placements of plain tensors among the inputs, in order; None for an input
            that stays unchanged.
        desired_input_layouts: the placements to redistribute them to.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same for keyword arguments.
        use_local_output: whether the module gets this rank's parts, not DTensors.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Replicate, Shard
    >>> from plugrad.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
    >>> def gathered():
    ...     style = PrepareModuleInput(
    ...         input_layouts=Shard(0), desired_input_layouts=Replicate(), use_local_output=True
    ...     )
    ...     layer = plugrad.nn.Flatten()
    ...     parallelize_module(layer, init_device_mesh("cpu", (2,)), style)
    ...     return layer(plugrad.ones(3, 4)).shape
    >>> dist.run_ranks(gathered, 2)[0]
    plugrad.Size([6, 4])
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts | None = None,
        desired_input_layouts: Layouts | None = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _tuple(input_layouts)
        self.desired_input_layouts = _tuple(desired_input_layouts)
        _check_pair(self.input_layouts, self.desired_input_layouts, "input_layouts")
        _check_pair(input_kwarg_layouts, desired_input_kwarg_layouts, "input_kwarg_layouts")
        self.input_kwarg_layouts = dict(input_kwarg_layouts or {})
        self.desired_input_kwarg_layouts = dict(desired_input_kwarg_layouts or {})
        self.use_local_output = use_local_output

    def _inputs(self, inputs: Any, mesh: DeviceMesh) -> Any:
        layouts, desired = self.input_layouts, self.desired_input_layouts
        if layouts is None or desired is None:
            return inputs
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(given) != len(layouts):
            raise ValueError(
                "module inputs and input_layouts should have same length! Got "
                f"{len(given)} and {len(layouts)}"
            )
        return tuple(
            _prepared(value, mesh, layout, wanted, self.use_local_output)
            for value, layout, wanted in zip(given, layouts, desired, strict=True)
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def prepare(module: Any, inputs: Any, kwargs: Any) -> Any:
            named = {
                key: _prepared(
                    value,
                    device_mesh,
                    self.input_kwarg_layouts.get(key),
                    self.desired_input_kwarg_layouts.get(key),
                    self.use_local_output,
                )
                for key, value in kwargs.items()
            }
            return self._inputs(inputs, device_mesh), named

        module.register_forward_pre_hook(prepare, with_kwargs=True)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts="
            f"{self.desired_input_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Turns a module's outputs into DTensors, and redistributes them.

    Args:
        output_layouts: the placements of plain tensors among the outputs, in order.
        desired_output_layouts: the placements to redistribute them to.
        use_local_output: whether the outputs are this rank's parts, not DTensors.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Replicate, Shard
    >>> from plugrad.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
    >>> def own_rows():
    ...     style = PrepareModuleOutput(
    ...         output_layouts=Replicate(), desired_output_layouts=Shard(0), use_local_output=True
    ...     )
    ...     layer = plugrad.nn.Flatten()
    ...     parallelize_module(layer, init_device_mesh("cpu", (2,)), style)
    ...     return layer(plugrad.ones(4, 3)).shape
    >>> dist.run_ranks(own_rows, 2)[0]
    plugrad.Size([2, 3])
    """

    def __init__(
        self,
        *,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.output_layouts = _tuple(output_layouts) or ()
        self.desired_output_layouts = _tuple(desired_output_layouts) or ()
        _check_pair(self.output_layouts, self.desired_output_layouts, "output_layouts")
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def finish(module: Any, inputs: Any, outputs: Any) -> Any:
            several = isinstance(outputs, (tuple, list))
            given = tuple(outputs) if several else (outputs,)
            if len(given) != len(self.output_layouts):
                raise ValueError(
                    "module outputs and output_layouts should have same length! Got "
                    f"{len(given)} and {len(self.output_layouts)}"
                )
            layouts = zip(given, self.output_layouts, self.desired_output_layouts, strict=True)
            made = tuple(
                _prepared(value, device_mesh, layout, wanted, self.use_local_output)
                for value, layout, wanted in layouts
            )
            return made if several else made[0]

        module.register_forward_hook(finish)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, desired_output_layouts="
            f"{self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` combined, with their arguments.

    Args:
        use_local_input: whether the module gets this rank's parts, not DTensors.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Replicate, Shard
    >>> from plugrad.distributed.tensor.parallel import PrepareModuleInputOutput, parallelize_module
    >>> def shapes():
    ...     seen = []
    ...     style = PrepareModuleInputOutput(
    ...         input_layouts=Shard(0),
    ...         desired_input_layouts=Replicate(),
    ...         use_local_input=True,
    ...         output_layouts=Replicate(),
    ...         desired_output_layouts=Shard(0),
    ...     )
    ...     layer = plugrad.nn.Softmax(dim=0)
    ...     parallelize_module(layer, init_device_mesh("cpu", (2,)), style)
    ...     layer.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].shape))
    ...     return seen, layer(plugrad.ones(2, 3)).shape
    >>> dist.run_ranks(shapes, 2)[0]
    ([plugrad.Size([4, 3])], plugrad.Size([2, 3]))
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts | None = None,
        desired_input_layouts: Layouts | None = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInputOutput({self.prepare_module_input!r}, "
            f"{self.prepare_module_output!r})"
        )
