"""plugrad.nn.utils: what is done to the gradients or parameters of a whole model at once."""

from plugrad_nn.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_
from plugrad_nn.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "parameters_to_vector",
    "vector_to_parameters",
]
