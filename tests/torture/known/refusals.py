"""Calls that plugrad refuses and PyTorch accepts."""

# ruff: noqa: E501  # tables

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.torture import specs
from tests.torture.known.operators import ANY


@dataclass(frozen=True)
class Refusal:
    """Calls that PyTorch accepts and plugrad refuses.

    Attributes:
        path: matches the function's whole name.
        message: is found in plugrad's error.
        when: whether the call is of the kind meant, where path and message do not say enough.
    """

    path: str
    message: str
    when: Callable[[Any], bool] | None = None


def _on_meta(call: Any) -> bool:
    return 'device="meta"' in "".join(call.lines())


def _of_no_elements(call: Any) -> bool:
    tensors = specs.tensors_in([call.args, call.kwargs])
    made = any(re.search(r"empty\(0|ones\(\(?(\d, )*0[,)]", line) for line in call.lines())
    return made or any(not t.values.size for t in tensors)


REFUSALS: tuple[Refusal, ...] = (
    # A bool is no size, position or step.
    Refusal(ANY, r"must be (tuple of )?ints?, not bool|element of type bool|must be bool, not int"),
    # A handle requires its schema's types; PyTorch's converts numbers to tensors and dtypes to numbers.
    Refusal(r"ops\.plugrad\..*", r"Expected a value of type|failed to match any schema|is missing value for argument 'dtype'"),
    Refusal(r"ops\.plugrad\..*", "Overflow when unpacking"),
    Refusal(r"(ops\.plugrad|Tensor)\.logical_.*", "in-place operation"),
    # A flag is a bool, not whatever has a truth value; a number is no tensor.
    Refusal("random.fork_rng|autograd.detect_anomaly", ""),
    Refusal(ANY, r"must be bool, not|argument 'ord' .* must be Number or str, not Tensor"),
    Refusal(r"(.*\.)?(\w*Tensor)", r"new\(\)"),
    # A condition that is a tensor of several elements has no truth value.
    Refusal(r"optim.*|(amp\.)?autocast", "Boolean value of Tensor"),
    # What a decorator is given is looked at before it is called.
    Refusal(ANY, r"^(no_grad|enable_grad)\(\): argument 'function' .* must be callable"),
    # A size is no byte.
    Refusal("UntypedStorage", "without overflow"),
    # A number is no dtype, and no tensor where nothing else is one.
    Refusal(ANY, r"^to\(\) received an invalid combination"),
    Refusal("floor_divide|.*result_type", r"got \((bool|int|float|complex|numpy\.\w+), (bool|int|float|complex|numpy\.\w+)\)"),
    Refusal(r"Tensor\.view", "must be tuple of ints, not plugrad.dtype"),
    Refusal(r"Tensor\.masked_fill_?", "to type bool without overflow"),
    Refusal("utils.checkpoint.checkpoint_sequential", "expected segments between"),
    Refusal(r"(Tensor\.)?(b?add\w*|r?sub\w*)", "Boolean (alpha|beta) only supported"),
    Refusal(r"nn\.\w*Dropout\w*", "but got nan"),
    Refusal("randint_like", r"got \(Tensor, Tensor"),
    Refusal(r"\w+Storage", "must be int or sequence, not bool"),
    Refusal(r"\w+Tensor", "takes sizes, which are integers", lambda call: re.search(r"= (True|False)$", "\n".join(call.lines()), re.MULTILINE) is not None),
    # The name of a reduction is a str, not its number.
    Refusal(ANY, "argument 'reduction' .*must be str, not"),
    # Arguments that nothing is done with, here, are checked, too.
    Refusal("stft", "argument 'pad_mode' .* must be str"),
    Refusal(r"nn\.utils\.clip_grads?_\w+", r"^clip_grads?_\w+\(\): argument '\w+' .*must be"),
    Refusal(r"Tensor\.(apply|map|map2)_", "object is not callable", _of_no_elements),
    Refusal(r"(ops\.plugrad\.|Tensor\.)?cholesky(\.\w+)?", "must be batches of square matrices", _of_no_elements),
    Refusal(r"ops\.plugrad\._linalg_svd(\.\w+)?", "only supported on CUDA inputs", _of_no_elements),
    Refusal(r"ops\.plugrad\.rrelu_with_noise_?(\.\w+)?", "Lower bound should be less"),
    Refusal("linalg.solve_triangular", "to have the same dtype, but found"),
    # A sequence of characters that happens to be empty.
    Refusal("unravel_index", "must be tuple of ints, not (str|bytes)"),
    # Without data, PyTorch does not check devices, and allows results that cannot be read.
    Refusal(ANY, r"same device|device type for generator|no data", _on_meta),
    # PyTorch does not look at what it is called with by itself only, or reads beyond the end.
    Refusal(
        r"(ops\.plugrad\.)?(\w+_backward\w*|_?native_\w+|batch_norm|_histogramdd_\w+|_fft_\w+|grid_sampler_[23]d)(\.\w+)?",
        r"should have the same dtype|normalization must be 0|expected (interpolation|padding)_mode|must match the size|do not fit together|out of bounds|out of range|should contain|must be defined",
    ),
    # What has no elements is not looked at.
    Refusal(
        r"(ops\.plugrad\.|Tensor\.|random\.)?(bernoulli|multinomial|normal|exponential|cauchy|geometric|log_normal|uniform|random|native_dropout)_?(\.\w+)?",
        "Expected p_in|but got p=|is out of bounds for|continuous probability|bernoulli_ expects|check_random_bounds|can't be cast to the desired|must match the size|match the broadcast shape",
        _of_no_elements,
    ),
    Refusal(
        r"(ops\.plugrad\.|Tensor\.)?(scatter\w*|gather|index_\w+|take|take_along_dim|put_?|embedding)(\.\w+)?",
        "dtype int32/int64 for index|indices should be|have dtype of long|out of bounds|Expected a long tensor",
        _of_no_elements,
    ),
    Refusal(r"(ops\.plugrad\.|Tensor\.)?(cum\w+|cat|roll)(\.\w+)?", "Dimension out of range", _of_no_elements),
    Refusal(r"ops\.plugrad\.index_put_?(\.\w+)?", "at least one index", _of_no_elements),
    # Nothing requires grad that is written with out=.
    Refusal(ANY, "don't support automatic differentiation", lambda call: "out" in call.kwargs),
    # A number is no flag.
    Refusal(r"ops\.plugrad\.(var|std)(_mean)?(\.\w+)?", "Dimension out of range"),
    # A number is no dtype.
    Refusal(r"ops\.plugrad\.(view|view_copy|to)(\.\w+)?", "invalid for input of size|invalid shape dimension|Cannot access accelerator|Device index must not be negative"),
    # A number added to the product with a vector, of a wider kind.
    Refusal(r"(ops\.plugrad|nn\.functional)\.linear(\.\w+)?", "must have the same dtype, but got", lambda call: len(call.args) > 2),
    # NumPy exports no such arrays.
    Refusal("from_dlpack|Tensor.__dlpack__", "DLPack only supports signed", lambda call: "bfloat16" in call.program()),
    # There is one CPU.
    Refusal(ANY, "device index 7 is out of range: backend 'cpu' has 1 device"),
    # TorchScript's operators on numbers.
    Refusal(r"ops\.plugrad\.pow", "without overflow|Integers to negative integer powers", lambda call: not specs.tensors_in(call.args) and "lib." not in "".join(call.lines()[:-1])),
    Refusal(r"ops\.plugrad\.log", "expected at most 1 argument"),
    # As of the family `operators`.
    Refusal(r"(ops\.plugrad|Tensor)\.cum(sum|prod)_(\.\w+)?", "desired output type Bool"),
    Refusal(r".*adaptive_avg_pool2d(\.\w+)?", "Expected 3D or 4D|could not infer output dtype"),
    # The function checks, the handle broadcasts.
    Refusal(r"ops\.plugrad\.binary_cross_entropy(_with_logits)?(\.\w+)?", "must be the same as input size|Using a target size"),
    # No dtype of index is cast.
    Refusal(r"Tensor\.__[gs]etitem__", "tensors used as indices must be"),
    Refusal(r"(Tensor\.)?split", r"got \(Tensor, Tensor"),
    # A tensor of one element that has a dimension is a list of sizes.
    Refusal(r"(Tensor\.)?split", "expects split_sizes to sum"),
    # An infix method called by its name takes one operand.
    Refusal(r"Tensor\.__\w+__", "positional argument|expected 1 argument|keyword argument|requires a 'Tensor"),
    # The constructors of modules and optimizers look at their arguments; PyTorch's leave them to the first use.
    Refusal(r"nn\.[A-Z]\w*|optim\.[A-Z]\w*", r"^([A-Z]\w+|empty|zeros)\(\): argument '\w+' .*must be"),
    # What is left over of a vector is a mistake.
    Refusal("nn.utils.vector_to_parameters", "expected a vector of|must be tuple of Tensors, not (dict|str)"),
    # A tensor of one element that has a dimension, as an int.
    Refusal(r"(Tensor\.)?tri[lu]_?", r"'diagonal' .* must be int, not Tensor"),
    # Iterables that are no sequences of sizes.
    Refusal("broadcast_shapes", "must be tuple of ints, not (bytes|range)"),
    # A class is none of its objects.
    Refusal("autograd.graph.get_gradient_edge", "Expected gradient function"),
    Refusal(ANY, "must be .*, not type$"),
    # Numbers that the dtype cannot hold; where PyTorch computes an infinity.
    Refusal(r"(ops\.plugrad\.|special\.|Tensor\.)?xlogy.*|ops\.plugrad\.(logspace|scatter|bucketize|searchsorted).*", "without overflow"),
    Refusal(r"(Tensor\.|ops\.plugrad\.)?(add|sub|subtract)_?(\.\w+)?", "without overflow"),
    Refusal(r"(ops\.plugrad\.)?tri[lu]_indices(\.\w+)?", "Storage size calculation overflowed|without overflow"),
    Refusal(r"(.*\.)?tensor_split(\.\w+)?", "to have dtype of long"),
    # Handles write to no results, and to no numbers; there is one layout.
    Refusal(r"ops\.plugrad\..*", "Unknown keyword argument '(out|layout|pin_memory)'"),
    Refusal(r"ops\.plugrad\.\w+_(\.\w+)?", "can't be cast to the desired", lambda call: not isinstance(call.args[0], specs.Tensor)),
    # Methods that PyTorch writes in Python take any object that has what they look at.
    Refusal(r"Tensor\.\w+", "doesn't apply to"),
    # PyTorch does not look at the dtype where there is no device.
    Refusal("amp.autocast", r"'dtype' \(position 2\) must be plugrad.dtype"),
    # NumPy's name of the input of a function.
    Refusal(r"(linalg\.|special\.|nn\.functional\.)?\w+", r"^\w+\(\) (got an unexpected keyword argument 'x'$|missing 1 required)", lambda call: "x" in call.kwargs),
    Refusal("rsub", "takes 2 positional arguments"),
    Refusal(r"ops\.plugrad\.\w+(\.\w+)?", "Expected a proper Tensor but got None"),
)  # fmt: skip


def known_refusal(call: Any, error: BaseException) -> bool:
    return any(
        re.fullmatch(refusal.path, call.path)
        and re.search(refusal.message, str(error))
        and (refusal.when is None or refusal.when(call))
        for refusal in REFUSALS
    )
