"""plugrad.utils.tensorboard: logs for TensorBoard, written by tensorboardX."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Final

from plugrad import Tensor

__all__ = ["SummaryWriter"]  # noqa: F822  # made on first access

# Methods that take tensors.
_METHODS: Final = (
    *("add_audio", "add_embedding", "add_histogram", "add_histogram_raw", "add_hparams"),
    *("add_image", "add_image_with_boxes", "add_images", "add_mesh", "add_pr_curve"),
    *("add_pr_curve_raw", "add_scalar", "add_scalars", "add_video"),
)
# PyTorch's options for how to write, which tensorboardX does not offer.
_WITHOUT_EFFECT: Final = {"add_scalar": ("new_style", "double_precision")}


def as_numpy(value: Any) -> Any:
    """The same with arrays in place of tensors; those without dimensions become numbers."""
    if isinstance(value, Tensor):
        plain = value.detach()
        if plain.is_floating_point() and plain.dtype.itemsize < 4:
            plain = plain.float()
        return plain.item() if plain.ndim == 0 else plain.numpy(force=True)
    if isinstance(value, dict):
        return {key: as_numpy(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(as_numpy(item) for item in value)
    return value


def _taking_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    ignored = _WITHOUT_EFFECT.get(method.__name__, ())

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = {name: as_numpy(value) for name, value in kwargs.items() if name not in ignored}
        return method(self, *map(as_numpy, args), **given)

    return call


def _add_graph(self: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: there is no graph of a module without running it."""
    raise NotImplementedError(
        "SummaryWriter.add_graph() draws what PyTorch has traced; plugrad.capture records the "
        "operators of a function"
    )


@functools.cache
def _writer_class() -> Any:
    try:
        writer: Any = importlib.import_module("tensorboardX").SummaryWriter
    except ModuleNotFoundError as error:
        if error.name != "tensorboardX":
            raise
        raise ImportError(
            "plugrad.utils.tensorboard writes with tensorboardX, which is not installed: "
            "pip install tensorboardX"
        ) from error
    methods = {
        name: _taking_tensors(getattr(writer, name)) for name in _METHODS if hasattr(writer, name)
    }
    about = {
        "__doc__": "tensorboardX's SummaryWriter, which takes tensors of plugrad's.",
        "__module__": __name__,
        "add_graph": _add_graph,
        "get_logdir": lambda self: self.logdir,
    }
    return type("SummaryWriter", (writer,), {**methods, **about})


def __getattr__(name: str) -> Any:
    if name == "SummaryWriter":
        return _writer_class()
    raise AttributeError(f"module 'plugrad.utils.tensorboard' has no attribute {name!r}")
