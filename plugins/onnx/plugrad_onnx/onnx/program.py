"""ONNXProgram: what `export` returns."""

from __future__ import annotations

import tempfile
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import plugrad
from plugrad.transforms.capture.trees import flatten

# The limit of a Protocol Buffers file, less some space for the rest of the model.
LARGEST = 2**31 - 2**24
# With external data, smaller tensors stay with the graph; others begin at multiples of this, so
# that they can be mapped into memory.
INLINE, ALIGNED = 1024, 4096


class ONNXProgram:
    """A model in ONNX's format.

    Attributes:
        model_proto: the `onnx.ModelProto`.

    >>> import plugrad
    >>> program = plugrad.onnx.export(plugrad.nn.Linear(3, 2), (plugrad.ones(1, 3),))
    >>> [node.op_type for node in program.model_proto.graph.node]
    ['Gemm']
    >>> program.input_names, program.output_names
    (['input'], ['output'])
    """

    def __init__(self, model_proto: onnx.ModelProto) -> None:
        self.model_proto = model_proto
        self._session: Any = None

    @property
    def input_names(self) -> list[str]:
        """The names of the graph's inputs.

        >>> import plugrad
        >>> model = plugrad.nn.Linear(3, 2)
        >>> plugrad.onnx.export(model, (plugrad.ones(1, 3),), input_names=["pixels"]).input_names
        ['pixels']
        """
        return [each.name for each in self.model_proto.graph.input]

    @property
    def output_names(self) -> list[str]:
        """The names of the graph's results.

        >>> import plugrad
        >>> model = plugrad.nn.Linear(3, 2)
        >>> plugrad.onnx.export(model, (plugrad.ones(1, 3),), output_names=["scores"]).output_names
        ['scores']
        """
        return [each.name for each in self.model_proto.graph.output]

    def save(self, destination: str | PathLike[str], *, external_data: bool | None = None) -> None:
        """Write the model to a file.

        Args:
            external_data: put the parameters into a separate file with the suffix ".data"; by
                default from 2 GB on, where one file cannot hold them.

        >>> import os, tempfile
        >>> import plugrad
        >>> program = plugrad.onnx.export(plugrad.nn.Linear(3, 2), (plugrad.ones(1, 3),))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     program.save(os.path.join(folder, "model.onnx"))
        ...     print(os.listdir(folder))
        ['model.onnx']
        """
        path = Path(fspath(destination))
        if external_data or (external_data is None and self._is_large()):
            _save_beside(self.model_proto, path)
        else:
            onnx.save_model(self.model_proto, str(path))

    def _is_large(self) -> bool:
        sizes = [len(tensor.raw_data) for tensor in self.model_proto.graph.initializer]
        return sum(sizes) > LARGEST

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[plugrad.Tensor, ...]:
        """Run the model with onnxruntime if it is installed, else with onnx's reference evaluator.

        Args:
            args: tensors in the order of the inputs, at any depth of lists, tuples and dicts.
            kwargs: tensors by the names of inputs.

        Returns:
            the results, on the CPU.
        """
        given, _ = flatten(args, sort=True)
        tensors = [each for each in given if isinstance(each, plugrad.Tensor)]
        feeds = dict(zip(self.input_names, tensors, strict=False)) | kwargs
        if len(tensors) + len(kwargs) != len(self.input_names):
            raise TypeError(
                f"expected {len(self.input_names)} tensors, for the inputs "
                f"{', '.join(self.input_names)}, got {len(tensors) + len(kwargs)}"
            )
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in feeds.items()}
        return tuple(plugrad.from_numpy(np.asarray(each)) for each in self._run(arrays))

    def _run(self, arrays: dict[str, Any]) -> list[Any]:
        if self._session is None:
            self._session = _session(self)
        results: list[Any] = self._session.run(None, arrays)
        return results

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        return (
            f"<ONNXProgram {graph.name}: {len(graph.node)} nodes, opset "
            f"{self.model_proto.opset_import[0].version}>"
        )


def _session(program: ONNXProgram) -> Any:
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(program.model_proto)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    where = {"sess_options": options, "providers": ["CPUExecutionProvider"]}
    if not program._is_large():
        return onnxruntime.InferenceSession(program.model_proto.SerializeToString(), **where)
    with tempfile.TemporaryDirectory() as folder:
        program.save(f"{folder}/model.onnx")
        return onnxruntime.InferenceSession(f"{folder}/model.onnx", **where)


def _save_beside(model: onnx.ModelProto, path: Path) -> None:
    """Write a model, and its initializers' elements to a file beside it."""
    small = onnx.ModelProto()
    for field, value in model.ListFields():
        if field.name == "graph":
            continue
        if isinstance(value, (int, str)):
            setattr(small, field.name, value)
        else:
            getattr(small, field.name).extend(value)
    graph = small.graph
    graph.name = model.graph.name
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    beside = path.with_name(path.name + ".data")
    with beside.open("wb") as file:
        for tensor in model.graph.initializer:
            held = graph.initializer.add(name=tensor.name, data_type=tensor.data_type)
            held.dims.extend(tensor.dims)
            elements = tensor.raw_data
            if len(elements) < INLINE:
                held.raw_data = elements
                continue
            file.write(bytes(-file.tell() % ALIGNED))
            held.data_location = onnx.TensorProto.EXTERNAL
            for key, entry in (
                ("location", beside.name),
                ("offset", file.tell()),
                ("length", len(elements)),
            ):
                held.external_data.add(key=key, value=str(entry))
            file.write(elements)
    onnx.save_model(small, str(path))
