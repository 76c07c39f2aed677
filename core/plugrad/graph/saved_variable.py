"""SavedVariable: a tensor that backward will need, with the version it must still have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, final

from mypy_extensions import i64

from plugrad.tensor.base import detached, materialize_meta, sizes_of, version_of

if TYPE_CHECKING:
    from plugrad.graph.node import Node
    from plugrad.tensor.base import TensorBase

FREED_MESSAGE: Final = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


@final
class SavedVariable:
    """A saved forward input or output.

    An input is kept as it is. An output would form a cycle (tensor -> grad_fn -> saved tensor),
    so it is kept without its history, which `unpack` puts back.

    Attributes:
        tensor: the input itself, or the output's data.
        saved_version: its version at the time.
        output_nr: the output's number, -1 for an input.
    """

    def __init__(self, tensor: TensorBase, output_nr: i64 = -1) -> None:
        self.tensor: TensorBase = tensor if output_nr < 0 else detached(tensor)
        self.saved_version: i64 = version_of(self.tensor)
        self.output_nr: i64 = output_nr

    def unpack(self, node: Node) -> TensorBase:
        """The tensor, as it was; `node` is the saver.

        Raises:
            RuntimeError: it was modified in place since.
        """
        tensor = self.tensor
        if version_of(tensor) != self.saved_version:
            self._modified(node)
        if self.output_nr < 0:
            return tensor
        result = detached(tensor)
        meta = materialize_meta(result)
        meta.grad_fn = node
        meta.output_nr = self.output_nr
        return result

    def _modified(self, node: Node) -> NoReturn:
        tensor = self.tensor
        sizes = ", ".join(str(size) for size in sizes_of(tensor))
        maker: Node | None = node if self.output_nr >= 0 else None
        output_nr: int = self.output_nr
        if self.output_nr < 0 and tensor.meta is not None:
            maker = tensor.meta.grad_fn
            output_nr = tensor.meta.output_nr
        of = "" if maker is None else f", which is output {output_nr} of {maker.name()},"
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [plugrad.{tensor.dtype.scalar_name}Tensor [{sizes}]]{of} is at version "
            f"{int(version_of(tensor))}; expected version {int(self.saved_version)} instead. Hint: "
            "enable anomaly detection to find the operation that failed to compute its gradient, "
            "with plugrad.autograd.set_detect_anomaly(True)."
        )


def save(tensor: TensorBase | None) -> SavedVariable | None:
    """Save a forward input; None stays None."""
    return None if tensor is None else SavedVariable(tensor)


def raise_freed() -> NoReturn:
    """What happens to those who need saved tensors after they were let go."""
    raise RuntimeError(FREED_MESSAGE)
