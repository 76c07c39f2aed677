"""ONNXProgram: what `export` returns."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import plugrad
from plugrad.transforms.capture.trees import flatten

# What one file of Protocol Buffers holds at most; the rest of the model is small.
LARGEST = 2**31 - 2**24


class ONNXProgram:
    """A model as ONNX has it.

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
        """What the graph's inputs are called."""
        return [each.name for each in self.model_proto.graph.input]

    @property
    def output_names(self) -> list[str]:
        """What the graph's results are called."""
        return [each.name for each in self.model_proto.graph.output]

    def save(self, destination: str | PathLike[str], *, external_data: bool | None = None) -> None:
        """Write the model to a file.

        Args:
            external_data: put the parameters into a file of its own beside it, with ".data" at the
                end of its name; by default if one file cannot hold them, from 2 GB on.
        """
        path = Path(fspath(destination))
        if external_data is None:
            external_data = (
                sum(len(t.raw_data) for t in self.model_proto.graph.initializer) > LARGEST
            )
        if not external_data:
            onnx.save_model(self.model_proto, str(path))
            return
        beside = path.with_name(path.name + ".data")
        beside.unlink(missing_ok=True)  # or the parameters would be added to it
        copy = onnx.ModelProto()
        copy.CopyFrom(self.model_proto)
        onnx.save_model(copy, str(path), save_as_external_data=True, location=beside.name)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[plugrad.Tensor, ...]:
        """Run the model, by onnxruntime if it is installed, else by onnx's own evaluator.

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
            self._session = _session(self.model_proto)
        results: list[Any] = self._session.run(None, arrays)
        return results

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        return (
            f"<ONNXProgram {graph.name}: {len(graph.node)} nodes, opset "
            f"{self.model_proto.opset_import[0].version}>"
        )


def _session(proto: onnx.ModelProto) -> Any:
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(proto)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
