"""Translates a captured graph to an ONNX model: calls, names, inputs and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

import plugrad
from plugrad.transforms.capture import Graph, Ref
from plugrad.transforms.capture.node import names_in
from plugrad_onnx.onnx import lowerings  # noqa: F401  # registers them
from plugrad_onnx.onnx.alignment import Call, aligned
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.dtypes import little_endian, onnx_type
from plugrad_onnx.onnx.errors import OnnxExporterError, SizeError, UnsupportedOperatorError
from plugrad_onnx.onnx.memory import Memory
from plugrad_onnx.onnx.recording import Places
from plugrad_onnx.onnx.registry import functional_of, lowering_of
from plugrad_onnx.onnx.sizes import Symbols, Varying, merged


class Translation:
    """One export.

    Attributes:
        graphs: the model's graph at each row of `symbols`.
        stored: names of parameters and buffers by the ids of the tensors.
    """

    def __init__(
        self,
        graphs: Sequence[Graph],
        places: Places,
        symbols: Symbols,
        opset: int,
        stored: Mapping[int, str],
    ) -> None:
        self.graph = graphs[0]
        self.places = places
        self.symbols = symbols
        self.stored = stored
        self.builder = Builder(opset, symbols)
        self.memory = Memory(self.builder, self._lower_view)
        self.calls = aligned(graphs, places)
        self.input_shapes = [
            tuple(merged(sizes) for sizes in zip(*[each.meta.shape for each in group], strict=True))
            for group in zip(*[graph.inputs for graph in graphs], strict=True)
        ]
        self._objects: dict[str, Any] = {}
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self._check_constants(graphs)

    # The whole

    def run(self, input_names: Sequence[str], output_names: Sequence[str] | None) -> None:
        """Make the nodes."""
        results = self._output_names(output_names)
        for each, shape, name in zip(
            self.graph.inputs, self.input_shapes, input_names, strict=True
        ):
            try:
                onnx_type(each.meta.dtype)
            except OnnxExporterError as error:
                raise OnnxExporterError(f"export(): the input {name!r}: {error}") from None
            value = self.builder.input(name, shape, each.meta.dtype)
            self.inputs.append(value)
            if each.same_as:
                self.memory.places[each.name] = self.memory.places[each.same_as]
            else:
                self.memory.add(each.name, value)
        for constant in self.graph.held.values():
            self._add_constant(constant.name, constant.value, constant.fresh)
        for call in self.calls:
            self._translate(call)
        self._add_outputs(results)

    def _check_constants(self, graphs: Sequence[Graph]) -> None:
        for other in graphs[1:]:
            for name, constant in self.graph.held.items():
                found = other.held.get(name)
                value, theirs = constant.value, None if found is None else found.value
                same = value is theirs
                if not same and isinstance(value, plugrad.Tensor) and constant.fresh:
                    same = isinstance(theirs, plugrad.Tensor) and plugrad.equal(value, theirs)
                elif not same and not isinstance(value, plugrad.Tensor):
                    same = value == theirs
                if not same:
                    raise OnnxExporterError(
                        "the model uses another constant if a dynamic size changes: make it "
                        "with operators of sizes, such as plugrad.arange(x.shape[0]), or leave "
                        "that dimension out of dynamic_axes or dynamic_shapes"
                    )

    def _add_constant(self, name: str, value: Any, fresh: bool) -> None:
        if not isinstance(value, plugrad.Tensor):
            self._objects[name] = value
            return
        stored = self.stored.get(id(value), "")
        made = self.builder.constant(value, name=stored or name)
        what = f"the parameter or buffer {stored!r}" if stored else "a tensor from outside of it"
        fixed = (
            f"the model writes to {what}, which an ONNX graph cannot keep: call model.eval() "
            "before the export, or return the new value as a result"
        )
        self.memory.add(name, made, "" if fresh else fixed)

    def _output_names(self, names: Sequence[str] | None) -> list[str]:
        """Reserve a name for each result."""
        count = sum(isinstance(output, Ref) for output in self.graph.outputs)
        if not count:
            raise OnnxExporterError("export(): the model returns no tensor")
        found = ["output"] if count == 1 else [f"output_{n}" for n in range(count)]
        if names is not None and len(names) > count:
            raise ValueError(
                f"export(): output_names has {len(names)} names, but the model returns "
                f"{count} tensors"
            )
        found[: len(names or ())] = names or ()
        return [self.builder.fresh(name) for name in found]

    def _add_outputs(self, names: Sequence[str]) -> None:
        found = [output for output in self.graph.outputs if isinstance(output, Ref)]
        b = self.builder
        b.path = ""
        made = {name for node in b.nodes for name in node.output}
        renamed: dict[str, str] = {}
        for name, output in zip(names, found, strict=True):
            value = self.memory.read(output.name)
            source = value.name
            if source not in made or source in renamed:
                source = b.op("Identity", value).name
            renamed[source] = name
            self.outputs.append(Value(name, value.shape, value.dtype))
        for node in b.nodes:
            node.input[:] = [renamed.get(name, name) for name in node.input]
            node.output[:] = [renamed.get(name, name) for name in node.output]

    # One call

    def _translate(self, call: Call) -> None:
        node = call.node
        try:
            if node.random:
                raise OnnxExporterError(
                    f"{node.op.name()} draws random numbers, and no ONNX runtime draws the same "
                    "ones as plugrad: call model.eval() before the export, or give the numbers to "
                    "the model as an input"
                )
            self._run(call)
        except OnnxExporterError as error:
            where = self.places(node.name)
            at = f" ({where})" if where else ""
            name = node.op.name()
            said = str(error) if name in str(error) else f"{name}: {error}"
            hint = (
                ": leave that dimension out of dynamic_axes or dynamic_shapes, or register a "
                "lowering that computes it"
                if isinstance(error, SizeError)
                else ""
            )
            raise type(error)(f"export(): {said}{at}{hint}") from error

    def _run(self, call: Call) -> None:
        node, memory = call.node, self.memory
        made = self._lower(call, self._resolve(call.args), self._resolve(call.kwargs))
        results = self._finished(call, made)
        known = set(node.reads())
        for number, (name, value) in enumerate(zip(node.results, results, strict=True)):
            if name is None or name in known or value is None:
                continue
            shares = node.shares[number] if number < len(node.shares) else ()
            if len(shares) == 1:
                memory.add_view(name, value, shares[0], call, number)
            else:
                memory.add(name, value)
                if len(shares) > 1:
                    memory.places[name].fixed = (
                        f"the model writes to what {node.op.name()} gives, which shares the "
                        "memory of several tensors: write to a clone() of it"
                    )
        for written in node.writes:
            place = memory.places[written]
            value = results[0]
            assert value is not None
            memory.write(written, self.builder.cast(value, place.value.dtype))

    def _lower(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        node, b = call.node, self.builder
        for dtype in call.dtypes:
            if dtype is not None:
                onnx_type(dtype)
        function = lowering_of(node.op.op)
        if function is None:
            functional = functional_of(node.op.op)
            function = None if functional is None else lowering_of(functional)
        if function is None:
            raise UnsupportedOperatorError(
                f"there is no lowering for the operator {node.op.name()}, and it does not "
                "decompose into operators that have one: plugrad.onnx.register_lowering adds one, "
                "or compute it outside of the model"
            )
        first = list(names_in(node.values[:1]))
        if node.writes and list(node.writes) != first:
            raise OnnxExporterError(
                f"{node.op.name()} writes to {len(node.writes)} tensors: in an ONNX graph one can "
                "be exported that writes to its first argument; call it without out="
            )
        b.shapes = [() if shape is None else shape for shape in call.shapes]
        b.dtypes = list(call.dtypes)
        b.path, b.stem = self.places.modules.get(node.name, ""), node.name
        result = function(b, *args, **kwargs)
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(results) != len(node.results):
            raise OnnxExporterError(
                f"the lowering of {node.op.name()} gave {len(results)} results, expected "
                f"{len(node.results)}"
            )
        return results

    def _finished(self, call: Call, results: list[Any]) -> list[Any]:
        """The results with the shapes and dtypes that the capture saw."""
        finished: list[Any] = []
        for value, shape, dtype in zip(results, call.shapes, call.dtypes, strict=True):
            if value is None or shape is None:
                finished.append(None)
                continue
            cast = self.builder.cast(value, dtype)
            finished.append(Value(cast.name, shape, dtype))
            self.builder.known(finished[-1])
        return finished

    def _lower_view(self, call: Call, base: Value) -> list[Value]:
        """A view of another value; its elements may have another dtype, such as positions."""
        args = tuple(base if isinstance(arg, Ref) else arg for arg in call.args)
        kwargs = self._resolve(call.kwargs)
        results = self._lower(call, args, kwargs)
        return [
            Value(value.name, shape, base.dtype)
            for value, shape in zip(results, call.shapes, strict=True)
        ]

    def _resolve(self, value: Any) -> Any:
        """The arguments, with references replaced by values."""
        if isinstance(value, Ref):
            if value.name in self._objects:
                return self._objects[value.name]
            return self.memory.read(value.name)
        if isinstance(value, (list, tuple)):
            return type(value)([self._resolve(item) for item in value])
        if isinstance(value, dict):
            return {name: self._resolve(item) for name, item in value.items()}
        return value

    # The model

    def model(self, name: str, export_params: bool) -> onnx.ModelProto:
        """The ONNX model; without `export_params` parameters and buffers are inputs."""
        b = self.builder
        nodes = _needed(b.nodes, {value.name for value in self.outputs})
        used = {name for node in nodes for name in node.input}
        # The model is made in place because messages of more than 2 GB cannot be copied.
        model = onnx.ModelProto(producer_name="plugrad", producer_version=plugrad.__version__)
        opsets = [("", b.opset), *[(domain, 1) for domain in sorted(b.domains)]]
        model.opset_import.extend([helper.make_opsetid(*each) for each in opsets])
        model.ir_version = helper.find_min_ir_version_for(list(model.opset_import)[:1])
        graph = model.graph
        graph.name = name
        graph.node.extend(nodes)
        graph.input.extend([self._info(value) for value in self.inputs])
        graph.output.extend([self._info(value) for value in self.outputs])
        stored = set() if export_params else set(self.stored.values())
        for key, (elements, dtype) in b.initializers.items():
            if key in used and key in stored:
                graph.input.append(
                    helper.make_tensor_value_info(key, onnx_type(dtype), elements.shape)
                )
            elif key in used:
                tensor = graph.initializer.add(name=key, data_type=onnx_type(dtype))
                tensor.dims.extend(elements.shape)
                tensor.raw_data = little_endian(elements)
        return model

    def _info(self, value: Value) -> onnx.ValueInfoProto:
        shape = [self._spelled(size) for size in value.sizes]
        return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), shape)

    def _spelled(self, size: Any) -> Any:
        """A size as a number or as an expression in dynamic sizes; None if it cannot be
        expressed."""
        if not isinstance(size, Varying):
            return size
        terms = self.symbols.fit(size)
        if terms is None:
            return None
        words = [
            "*".join([*([str(factor)] if factor != 1 or not names else []), *names])
            for names, factor in sorted(terms.items(), key=lambda item: -len(item[0]))
        ]
        return " + ".join(words)


def _needed(nodes: Sequence[onnx.NodeProto], outputs: set[str]) -> list[onnx.NodeProto]:
    """The nodes that the outputs depend on."""
    needed = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            needed.update(node.input)
            kept.append(node)
    return kept[::-1]
