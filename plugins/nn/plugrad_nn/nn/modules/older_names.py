"""Classes that PyTorch keeps under their old names: Container, NLLLoss2d."""

from __future__ import annotations

import warnings
from typing import Any

from plugrad_nn.nn.loss import NLLLoss
from plugrad_nn.nn.module import Module


class Container(Module):
    """A module with others in it, given by name. Deprecated: subclass `Module`.

    >>> import warnings
    >>> import plugrad
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     plugrad.nn.Container(first=plugrad.nn.ReLU()).first
    ReLU()
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in "
            "`nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class NLLLoss2d(NLLLoss):
    """`NLLLoss` under its old name for images. Deprecated: use `NLLLoss`.

    >>> import warnings
    >>> import plugrad
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     loss = plugrad.nn.NLLLoss2d()
    >>> loss(plugrad.zeros(1, 2, 3, 3), plugrad.zeros(1, 3, 3, dtype=plugrad.int64))
    tensor(0.)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in "
            "replacement and see its documentation for more details.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)
