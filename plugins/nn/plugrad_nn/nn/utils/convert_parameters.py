"""All parameters as one vector and back, for optimisers that work on vectors."""

from __future__ import annotations

from collections.abc import Iterable

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains


@explains
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other, in one dimension.

    Args:
        parameters: tensors of any shapes.

    >>> import plugrad
    >>> plugrad.nn.utils.parameters_to_vector([plugrad.ones(1, 2), plugrad.zeros(1)])
    tensor([1., 1., 0.])
    """
    listed = list(parameters)
    for parameter in listed:
        if not isinstance(parameter, Tensor):
            raise TypeError(
                "parameters_to_vector(): argument 'parameters' (position 1) must be tuple of "
                f"Tensors, but found element of type {type(parameter).__name__}"
            )
    return plugrad.cat([parameter.reshape(-1) for parameter in listed])


@explains
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copies a vector as `parameters_to_vector` gives it into the parameters.

    Args:
        vec: (N), as many elements as the parameters have together.
        parameters: tensors that are written to.

    >>> import plugrad
    >>> weights = [plugrad.zeros(1, 2), plugrad.zeros(1)]
    >>> plugrad.nn.utils.vector_to_parameters(plugrad.tensor([1.0, 2.0, 3.0]), weights)
    >>> weights
    [tensor([[1., 2.]]), tensor([3.])]
    """
    listed = list(parameters)
    expected = sum(parameter.numel() for parameter in listed)
    if vec.numel() != expected:
        raise ValueError(
            f"expected a vector of {expected} elements for the parameters, got {vec.numel()}"
        )
    start = 0
    with plugrad.no_grad():
        for parameter in listed:
            count = parameter.numel()
            parameter.copy_(vec[start : start + count].reshape(parameter.shape))
            start += count
