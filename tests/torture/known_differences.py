"""Where plugrad differs from PyTorch and is meant to; docs/reliability.md gives the reasons."""

# ruff: noqa: E501  # tables

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from operator import mul
from typing import Any

import numpy as np

from tests.torture import specs


@dataclass(frozen=True)
class Difference:
    """Findings of the family `operators` that are none.

    Attributes:
        op: matches the operator's whole name.
        kind: is found in the kind of difference.
        details: is found in its details.
        when: whether the call is of the kind meant, where its operator does not say enough.
    """

    op: str
    kind: str
    details: str = ""
    when: Callable[[Any], bool] | None = None


def _with_integers(call: Any) -> bool:
    tensors = specs.tensors_in([call.args, call.kwargs])
    return any(not t.dtype.startswith(("float", "bfloat", "complex")) for t in tensors)


def _with_complex(call: Any) -> bool:
    return any(t.dtype.startswith("complex") for t in specs.tensors_in(call.args))


def _into_integers(call: Any) -> bool:
    return call.out is not None and call.out.dtype != "bool"


def _complex_product(call: Any) -> bool:
    return "prod" in (*call.args, *call.kwargs.values()) and _with_complex(call)


def _of_several_dtypes(call: Any) -> bool:
    return len({t.dtype for t in specs.tensors_in(call.args)}) > 1


def _in_double_precision(call: Any) -> bool:
    return any(t.dtype == "float64" for t in specs.tensors_in(call.args))


def _without_elements(call: Any) -> bool:
    return any(not t.values.size for t in specs.tensors_in([call.args, call.kwargs]))


def _writes_integers(call: Any) -> bool:
    return call.form == "inplace" and not call.args[0].dtype.startswith(
        ("float", "bfloat", "complex")
    )


def _without_channels(call: Any) -> bool:
    sizes = call.args[0].values.shape
    extents = int(re.findall(r"\d", call.op)[0])
    return len(sizes) > extents and sizes[-1 - extents] == 0


def _requires_grad(call: Any) -> bool:
    """Whether a call with `out=` has a tensor that requires grad."""
    tensors = specs.tensors_in([call.args, call.kwargs])
    return call.out is not None and any(t.requires_grad for t in [call.out, *tensors])


def _is_huge(call: Any) -> bool:
    """Whether one of the numbers is far beyond all memory."""
    numbers = [*call.args, *call.kwargs.values()]
    return any(type(number) is int and number >= 1 << 40 for number in numbers)


def _strided_weight(call: Any) -> bool:
    return any(t.layout != "contiguous" for t in specs.tensors_in(call.args[1:]))


def _larger_source(call: Any) -> bool:
    index, source = call.args[2:4]
    return bool(index.values.shape != source.values.shape)


def _counts_elements(call: Any) -> bool:
    orders = (*call.args[1:3], call.kwargs.get("ord"), call.kwargs.get("p"))
    return any(type(order) in (int, float) and order == 0 for order in orders)


def _reduces(call: Any) -> bool:
    return call.kwargs.get("reduce") is not None


def _in_whole_numbers(call: Any) -> bool:
    """Whether integers are looked up among integers."""
    sequence = call.args[0 if "searchsorted" in call.op else 1]
    return not sequence.dtype.startswith(("float", "bfloat"))


def _is_special(call: Any) -> bool:
    return bool(call.special)


def _overlaps(call: Any) -> bool:
    sizes, strides = call.args[2:4]
    places = [sum(map(mul, at, strides)) for at in product(*map(range, sizes))]
    return len(set(places)) < len(places)


def _input_requires_grad(call: Any) -> bool:
    return bool(call.args[0].requires_grad)


def _equal_integers(call: Any) -> bool:
    """Whether equal elements stay equal when they are moved a little."""
    values = call.args[0].values
    if call.args[0].layout == "expanded":
        values = np.broadcast_to(values[:1], values.shape)
    return values.dtype.kind not in "fc" and len(np.unique(values)) < values.size


def _is_unsorted(call: Any) -> bool:
    (sequence, *_) = call.args if "searchsorted" in call.op else call.args[1:]
    values = sequence.values
    if isinstance(sorter := call.kwargs.get("sorter"), specs.Tensor):
        values = np.take_along_axis(values, sorter.values, -1)
    return not bool((values[..., 1:] >= values[..., :-1]).all())


def _unknown_reduction(call: Any) -> bool:
    return (*call.args[2:], call.kwargs.get("reduction", 1))[0] not in (0, 1, 2)


def _in_16_bits(call: Any) -> bool:
    return bool(call.args[0].dtype.endswith("float16"))


def _strided_offsets(call: Any) -> bool:
    return any(t.layout != "contiguous" for t in specs.tensors_in([call.args, call.kwargs]))


def _negative_dims(call: Any) -> bool:
    dims = call.args[1]
    return isinstance(dims, (tuple, list)) and min(dims, default=0) < 0


def _beyond_the_end(call: Any) -> bool:
    """Whether segments are longer than their tensor, which PyTorch's kernel reads all the same."""
    axis, values = call.kwargs.get("axis", 0), call.args[0].values
    offsets = call.kwargs.get("offsets")
    return offsets is not None and int(offsets.values.max(initial=0)) > values.shape[axis]


def _one_column_of_bytes(call: Any) -> bool:
    image, size = call.args[:2]
    return image.dtype == "uint8" and isinstance(size, list) and size[-1] == 1


def _is_singular(call: Any) -> bool:
    values = call.args[0].values
    return values.shape[-1] > 0 and bool((np.linalg.det(values) == 0).any())


def _fractions_as_integers(call: Any) -> bool:
    """A range with fractional numbers, in integers other than int64."""
    dtype = call.out.dtype if call.out else getattr(call.kwargs.get("dtype"), "path", "")
    return "int" in dtype and any(isinstance(number, float) for number in call.args)


ANY = ".*"
REFUSES = "only PyTorch raises"
DIFFERENCES: tuple[Difference, ...] = (
    # The operator takes such limits in both; nn.functional.hardtanh, with which it is compared, in neither.
    Difference("hardtanh_?", REFUSES, "min_val cannot be greater than max_val"),
    # Results are cast to the dtype of `out=` wherever that is allowed for any operator.
    Difference(
        ANY,
        REFUSES,
        r"Found dtype|Expected out t|expected scalar_type|the output given to float_power|heaviside is not yet implemented|Expected result to be of dtype|Expected the (output|dtype)|dtype of out|only supports bool tensor for result|"
        r"does not match input dtype|Bad in-place call|nonzero: Expected out",
    ),
    Difference("addbmm|baddbmm", REFUSES, "result type Long can't be cast to the desired output type Bool"),
    # Dtypes that PyTorch's kernels do not have, or have no gradient for, or do not mix.
    Difference(
        ANY,
        REFUSES,
        r"Autograd not support dtype|Expected a floating point or complex tensor|only supports floating-point dtypes|"
        r"Expected both inputs to be Half|expected scalar type|to have the same dtype|must have the same dtype|"
        r"dtypes must be the same|Expected object of scalar type|"
        r"expect parameter to have scalar type|on an unsigned type|cannot be converted to type|"
        r"Got unsupported ScalarType|does not support automatic differentiation|mixed dtype",
    ),
    Difference("(lstm|gru|rnn_tanh|rnn_relu)_cell", REFUSES, "can't be cast to the desired", _of_several_dtypes),
    Difference("huber_loss|smooth_l1_loss|addcdiv|addcmul", REFUSES, "can't be cast to the desired|Found dtype"),
    # PyTorch's own assertions, requirements only of its handles, and its faults.
    Difference(ANY, REFUSES, "failed to match any schema"),
    Difference(ANY, REFUSES, "Could this error message be improved"),
    Difference("take_along_dim|kron|conv_tbc", REFUSES, "view size is not compatible"),
    Difference(r"fft\..*|_fft_.*", REFUSES, "MKL FFT error"),
    Difference("_foreach_.*", "gradient: only PyTorch", "inconsistent range for TensorList output"),
    Difference("_foreach_.*", "gradient: only PyTorch", "can't be cast to the desired", _with_integers),
    Difference("_foreach_.*", REFUSES, "Expected scalars to be contiguous"),
    Difference("vander|linalg.cond", "gradient: only PyTorch", "modified by an inplace operation"),
    Difference("_foreach_.*", "gradient: only PyTorch", r"select\(\): index \d+ out of range"),
    Difference("_foreach_norm", REFUSES, "expects ord to be integer or float"),
    Difference("norm_except_dim|bilinear", REFUSES, "the unspecified dimension size -1 can be any value"),
    Difference("pixel_shuffle", "gradient: only PyTorch", "returned an invalid gradient", _without_elements),
    Difference("adaptive_(avg|max)_pool.d", "gradient: only PyTorch", "to have non-zero size"),
    Difference("_?embedding_bag.*", "gradient: only PyTorch", "Expected contiguous tensor"),
    Difference("histc", REFUSES, "should have the same dtype", lambda call: call.out is not None),
    Difference("chain_matmul|adaptive_avg_pool3d", REFUSES, "expected out tensor to have dtype|expected dtype", lambda call: call.out is not None),
    Difference("combinations", REFUSES, "bad_alloc|integer multiplication overflow"),
    Difference("_ctc_loss", REFUSES, "is not differentiable with respect to argument"),
    Difference("_?embedding_bag(_forward_only)?", REFUSES, "Expected idx >= 0", _strided_weight),
    Difference("instance_norm", REFUSES, r"select\(\): index 0 out of range", _without_elements),
    Difference("lu_unpack", "gradient: only PyTorch", "exceeds dimension size|must have at least 2 dimensions"),
    Difference("grid_sampler_[23]d_backward", "gradient: only PyTorch", r"scatter\(\): Expected self.dtype"),
    Difference("conv.*|batch_norm", REFUSES, r"select\(\): index 0 out of range|create a primitive descriptor|Only zero batch or zero channel"),
    # Filters without elements, which are a sum of nothing.
    Difference(r"conv(_transpose)?\dd", REFUSES, "kernel size should be greater than zero|weight tensor expected, but got"),
    # With out= only.
    Difference("diff", REFUSES, "start out of range", lambda call: call.out is not None),
    # The number of elements that are not 0 has a gradient of 0 in either; PyTorch leaves it out.
    Difference(r"(linalg[._])?(vector_)?norm|_foreach_norm|dist", "gradient: value$", "None$", _counts_elements),
    # Without channels in the input PyTorch's result has none either.
    Difference(r"conv\dd", "shape", when=_without_channels),
    Difference("linalg.householder_product|or(mqr|gqr)", "gradient: value$", "None$", _without_elements),
    # PyTorch's copies require grad, but have no derivative.
    Difference("detach_copy|_foreach_copy_?", "requires_grad|is_leaf"),
    Difference("view_copy", "requires_grad|is_leaf", when=lambda call: call.out is not None),
    # A composition knows which result depends on what.
    Difference("grid_sampler_[23]d_backward", "requires_grad|is_leaf|gradient: value$", "^(False|True|None),"),
    # PyTorch's kernel looks at no shapes and no modes, and reads what is behind the end.
    Difference("grid_sampler(_[23]d(_backward)?)?", "only plugrad raises", "Expected grad_output of shape|expected (padding|interpolation)_mode|expected grid to have the dtype"),
    Difference("_?ctc_loss", "only plugrad raises", "is out of bounds for dimension 2"),
    Difference("_ctc_loss_backward", "only plugrad raises", "must be of size batch_size|Expected (input|target)_lengths to have|Expected tensor to have size"),
    # PyTorch's kernels read other elements of the memory.
    Difference("_?embedding_bag(_forward_only)?|native_group_norm", "values", when=_strided_weight),
    Difference("_?upsample_.*", "values", when=_one_column_of_bytes),
    Difference("segment_reduce", "values", when=lambda call: _strided_offsets(call) or "unsafe" in call.kwargs),
    Difference("fractional_max_pool[23]d", "only plugrad raises", "expected a kernel_size above 0"),
    Difference("cross_entropy_loss", "only plugrad raises", "label_smoothing must be between"),
    Difference("inverse|linalg.inv", "only plugrad raises", "singular", _is_special),
    Difference(ANY, "only plugrad raises", "matrix contained non-finite values", _is_special),
    Difference("_foreach_addc(mul|div)", "only plugrad raises", "without overflow", _of_several_dtypes),
    # PyTorch's gradient has minus the targets, which bytes have not.
    Difference("soft_margin_loss", "gradient: values", when=_with_integers),
    # PyTorch does not write the transform of one dimension to `out`.
    Difference("fft.ihfftn", "values", when=lambda call: call.out is not None),
    Difference("cholesky|linalg.cholesky(_ex)?", REFUSES, "not positive-definite", _is_special),
    Difference("gradient", "only plugrad raises", "a coordinate for each of"),
    Difference("rrelu_with_noise", "only plugrad raises", "Lower bound should be"),
    Difference("max_unpool[123]d", "only plugrad raises", "Found an invalid max index"),
    Difference("_fft_c2[cr]", "only plugrad raises", "dims must be unique|expected size|Dimension out of range|normalization must be"),
    Difference("_fft_.*", "values", when=_negative_dims),
    # PyTorch's gradient of large images ignores the scale that its result heeds.
    Difference("upsample_nearest2d", "gradient: values"),
    Difference("segment_reduce", "values", when=_beyond_the_end),
    # In single precision PyTorch's Bessel function overflows.
    Difference("kaiser_window|signal.windows.kaiser", "values", "nan"),
    # Lengths in a tensor are read in order, however they lie in memory.
    Difference("_ctc_loss_backward", "values", when=_strided_weight),
    # PyTorch returns what it is given, on the CPU only.
    Difference("pixel_unshuffle", "shape", when=_without_elements),
    # Zero times what is infinite, from matrices that have no inverse.
    Difference(r"linalg\.(ldl|lu)_solve", "values", "inf|nan"),
    # A number that names no reduction: PyTorch's result is the loss of the first element.
    Difference("soft_margin_loss", "shape|values", when=_unknown_reduction),
    # PyTorch's Taylor polynomials in 16 bits are no numbers; plugrad computes in float32.
    Difference(r"(linalg\.)?matrix_exp", "values", when=_in_16_bits),
    # What a convolution pads is laid out in memory.
    Difference(r"conv\dd", "only plugrad raises", "Storage size calculation|can't allocate memory", _is_huge),
    Difference("all|any", "values", when=_into_integers),
    # Not conjugated in place.
    Difference("Tensor.scatter_reduce_|scatter_reduce", "gradient: values", when=_complex_product),
    # A source that is larger than its index.
    Difference("Tensor.scatter_reduce_|scatter_reduce|scatter|scatter_add", "gradient: only PyTorch", "must match the size of tensor|returned an invalid gradient"),
    # The gradient that is zero where the input is overwritten is zero elsewhere in PyTorch.
    Difference("as_strided_scatter", "gradient: values", when=_input_requires_grad),
    # Which of the elements that are written to one place stays.
    Difference("as_strided_scatter", "values", when=_overlaps),
    Difference("clamp|clip", "gradient: only PyTorch", "broadcast shape"),
    # Dtypes are checked as ever, also where PyTorch's kernel for integers, or for no elements, does not.
    Difference("conv.*", "only plugrad raises", "type .* should be the same", lambda call: _with_integers(call) or not call.args[0].values.size),
    # PyTorch lets these overwrite a leaf, and passes the gradient through what they overwrote.
    Difference(r"logical_(and|or|xor|not)", "gradient: values|only plugrad raises", "leaf|"),
    # PyTorch's kernel writes gradients of one layout.
    Difference("nll_loss(2d)?", "gradient: only PyTorch", "grad_input must be contiguous"),
    # PyTorch rounds 2**y to an integer.
    Difference("ldexp", "gradient: values", when=_with_integers),
    # The gradient of a negative magnitude has the wrong sign in PyTorch; a magnitude of 0 is left out.
    Difference("polar", "gradient: values", when=lambda call: bool((call.args[0].values <= 0).any())),
    # A bool is no size, position or step.
    Difference(ANY, "only plugrad raises", r"must be (tuple of )?ints?, not bool|element of type bool|must be bool, not (int|float|NoneType)"),
    # Operands without elements have their dtypes and indices checked like any others.
    Difference("addbmm|baddbmm|matmul|batch_norm|conv_tbc", "only plugrad raises", "the same|scalar type of", _without_elements),
    Difference("_?embedding_bag(_forward_only)?", "only plugrad raises", "one of the following scalar types", _with_integers),
    Difference("_foreach_powsum|conv_tbc", "result: dtype", when=_without_elements),
    Difference("fft.r?fftfreq", "shape", when=lambda call: call.args[0] == 0),
    Difference("instance_norm", "only plugrad raises", "mixed dtype", _of_several_dtypes),
    Difference("replication_pad.d", "only plugrad raises", "allocate memory"),
    Difference("scaled_dot_product_attention", "only plugrad raises", "of a floating point dtype", _without_elements),
    Difference("nansum", "only plugrad raises", "can't be cast", lambda call: call.out is not None and _without_elements(call)),
    # A weight that is multiplied with nothing changes nothing.
    Difference("group_norm", "gradient: values", "PyTorch: .nan", _without_elements),
    Difference("adaptive_avg_pool2d", "only plugrad raises", "Expected 3D or 4D", _without_elements),
    Difference("adaptive_avg_pool2d", "only plugrad raises", "allocate memory"),
    # Integers have no mean, even without elements.
    Difference("adaptive_avg_pool2d", "only plugrad raises", "could not infer output dtype", _with_integers),
    Difference("index_(add|copy|fill|put)", "only plugrad raises", "out of bounds", _without_elements),
    Difference("roll", "only plugrad raises", "Dimension out of range", _without_elements),
    Difference("addmm|addbmm|baddbmm", "only PyTorch raises", "can't be cast to the desired output type Bool", _without_elements),
    # Where one element is infinite or nan: nan times what is padded, or left out, is nan; a recurrence that stops at nan is no result.
    Difference("conv.*|prod|cumprod|linalg.(solve|multi_dot)|matrix_power|ldexp|polar|glu", "values", when=_is_special),
    Difference(r"special::(i1e?|.*_polynomial_\w)", "values", when=_is_special),
    # Neither library has the gradient of the logarithm of what is negative.
    Difference(r"logdet|logcumsumexp|_ctc_loss|renorm|norm|segment_reduce|_foreach_(maximum|minimum|pow)", "gradient: values", when=_is_special),
    Difference(r"(linalg\.)?slogdet", "values", when=_is_special),
    Difference(r"linalg\.(householder_product|ldl_solve|lu_solve|qr|inv_ex)|qr|cholesky_inverse", "values", when=_is_special),
    # What nan is equal to, or before, PyTorch's sort does not say.
    Difference("mode|unique(_consecutive)?", "values", when=_is_special),
    Difference("histogramdd|gradient", "values", when=lambda call: _is_special(call) or _with_integers(call)),
    # Beyond all places, where reflected.
    Difference("grid_sampler.*", "values", when=_is_special),
    # PyTorch looks whether the base is one.
    Difference("float_power|pow", "values", "nan", _with_complex),
    # Random numbers of what is none.
    Difference("_standard_gamma|_sample_dirichlet", "values", "nan"),
    # A logarithm counts as -100 at least, in the gradient as well.
    Difference("binary_cross_entropy", "gradient: values", when=_is_special),
    # PyTorch's gradient depends on whether its kernel takes several elements at once.
    Difference("hardtanh|relu6|hardswish|elu|celu|selu", "gradient: values", when=_is_special),
    # A part of the gradient goes to the input, which is not included, in PyTorch.
    Difference("scatter_reduce", "gradient: values", when=lambda call: call.kwargs.get("include_self") is False),
    # PyTorch's gradient of a singular matrix is 0 where no graph of it is made, or infinite by way of a matrix nearby.
    Difference("det|linalg.det|logdet", "gradient: values", when=_is_singular),
    # What is looked up in has to be sorted.
    Difference("searchsorted|bucketize", "values", when=_is_unsorted),
    # A function requires the exact dtype in all of its forms; PyTorch casts if it copies, or works element by element.
    Difference("clamp|clip", "only plugrad raises", "Expected out tensor to have dtype", lambda call: len(specs.tensors_in([call.args, call.kwargs])) > 1),
    Difference("inner", "only plugrad raises", "Expected out tensor to have dtype", lambda call: not (call.args[0].values.ndim and call.args[1].values.ndim)),
    Difference("cholesky_(inverse|solve)", "only plugrad raises", "Expected out tensor to have dtype"),
    Difference("matrix_power", "only plugrad raises", "Expected out tensor to have dtype", lambda call: call.args[1] in (0, 1)),
    # PyTorch has nan or huge numbers at infinities and poles, and for orders with factorials that overflow.
    Difference("(special::)?polygamma", "values", "inf|nan"),
    # With out=, nothing may require grad, whichever operator it is.
    Difference(ANY, "only plugrad raises", "don't support automatic differentiation", _requires_grad),
    # The arguments are first converted to whole numbers, as for int64.
    Difference("arange", "only plugrad raises|shape|values", when=_fractions_as_integers),
    # PyTorch's steps are whole, too.
    Difference("logspace", "values", when=_into_integers),
    # PyTorch's has eight digits.
    Difference("special::airy_ai", "values", when=_in_double_precision),
    # Sums without terms, of several dtypes.
    Difference("einsum|cdist", "result: dtype", when=_without_elements),
    # Where powers overflow, which elements are nan depends on the order of the products.
    Difference(r"(linalg\.)?matrix_power", "values", "inf|nan", lambda call: _with_complex(call) or call.args[1] >= 16),
    # A bias of another dtype, which PyTorch takes where the input is of double precision.
    Difference("conv_transpose[12]d", "only plugrad raises", "bias type .* should be the same", _in_double_precision),
    # The angle of nothing.
    Difference("logdet", "values", "inf", _with_complex),
    Difference("conj_physical", "is_leaf|versions", when=lambda call: not _with_complex(call)),
    Difference("tensor_split", REFUSES, "to have dtype of long"),
    # The imaginary part is never dropped.
    Difference("logsumexp|mean", "only plugrad raises", r"Complex\w+ can't be cast to the desired output", _with_complex),
    # An integer that the dtype of the integers cannot hold; PyTorch's wraps around.
    Difference("searchsorted|bucketize", "only plugrad raises|values", "without overflow|PyTorch", _in_whole_numbers),
    # A factor that the dtype of the matrices cannot hold.
    Difference("addmm|b?addbmm|threshold", "only plugrad raises", r"type c10::(Half|BFloat16) without overflow"),
    # The largest of no sums.
    Difference(r"linalg\.(matrix_)?norm", "requires_grad|is_leaf", "", _without_elements),
    Difference("absolute", "only plugrad raises", "Expected out tensor to have dtype", _with_complex),
    # PyTorch's kernel reads other elements of the memory.
    Difference("batch_norm", "gradient: values", when=_strided_weight),
    # What is not read has a gradient in PyTorch.
    Difference("scatter_reduce", "gradient: values", when=_larger_source),
    # "not implemented" in PyTorch, or, for what is written to a view, left out.
    Difference("scatter", "gradient: value$", "None$", _reduces),
    # Weights of another kind than the input: PyTorch's fused kernel casts them, and drops imaginary parts.
    Difference("rms_norm", "result: dtype", when=_of_several_dtypes),
    Difference("linalg.solve_triangular", "only plugrad raises", "to have the same dtype", _with_complex),
    # An integer tensor that is written to in place with what requires grad does not require grad.
    Difference(ANY, "requires_grad|is_leaf", "", _writes_integers),
    # Which of equal elements is meant, neither library says.
    Difference("kthvalue|median|nanmedian|mode|topk|sort|argsort", "values", when=_equal_integers),
)  # fmt: skip


def known(call: Any, kind: str, details: str) -> bool:
    name = call.op.rpartition(".")[2].rstrip("_")
    return any(
        (re.fullmatch(difference.op, call.op) or re.fullmatch(difference.op, name))
        and re.search(difference.kind, kind)
        and re.search(difference.details, details)
        and (difference.when is None or difference.when(call))
        for difference in DIFFERENCES
    )


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


@dataclass(frozen=True)
class Parting:
    """Findings of the family `programs` that are none.

    Attributes:
        text: is found in the difference.
        program: is found in the program.
        when: whether it is of the kind meant, where the difference does not say enough.
    """

    text: str
    program: str = ""
    when: Callable[[Any], bool] | None = None


def _writes_gradient(parted: Any) -> bool:
    return bool(parted.raised_by("g"))


def _applied_to_result(parted: Any) -> bool:
    statement = parted.statement()
    return statement is not None and ".apply(w" in statement.text


def _without_gradient(parted: Any) -> bool:
    """Whether the results of the statement that is spoken of have no gradient."""
    variables = parted.ours()[1]
    found = [variables.get(name) for name in parted.statement().defines]
    return bool(found) and all(isinstance(value, dict) and not value["value"][1] for value in found)


def _refused_dirty(parted: Any) -> bool:
    """Whether a custom Function was refused, since it wrote to a view of a leaf."""
    statements = parted.program.statements
    return any(
        what == "raised" and "Dirty" in statements[at].text and "a view of a leaf" in str(value)
        for at, what, value in parted.ours()[0]
    )


def _raised_in_backward(parted: Any) -> bool:
    statements = parted.program.statements
    return any(
        what == "raised" and "backward(" in statements[at].text for at, what, _ in parted.ours()[0]
    )


def _both_refuse(parted: Any) -> bool:
    """Whether the statement that PyTorch refuses, since a value was overwritten, is refused."""
    return any(
        what == "raised" and "modified by an inplace operation" in str(value)
        for at, what, value in parted.ours()[0]
        if parted.program.statements[at] is parted.statement()
    )


PARTINGS: tuple[Parting, ...] = (
    # Both refuse, each at the first node that keeps what was overwritten: a hook may come before.
    Parting(r"hook \d+: (.*\n)*  but theirs: .*modified by an inplace operation", when=_both_refuse),
    # PyTorch lets some operators write to what is one in memory, but not where it is conjugated or negated.
    Parting("only theirs: .*more than one element of the written-to tensor", r"\.(mH|H|imag|adjoint|conj)\b"),
    # PyTorch's node keeps a tensor that plugrad's does not need, and so cannot run again.
    Parting("only theirs: .*backward through the graph a second time"),
    # PyTorch has no second derivative of some operators.
    Parting(r"only theirs: .*derivative for ('\w+'|aten::\w+) is not implemented"),
    # PyTorch checks overlaps in some operators, plugrad in all; PyTorch lets `out=` write to anything.
    Parting("only ours: .*(more than one element of the written-to tensor|to inference tensor outside)"),
    Parting("Could this error message be improved"),
    # A real view of complex numbers that were made part of the graph after it.
    Parting("only theirs: .*'a leaf Variable that requires grad is being used in an in-place operation"),
    Parting(r"grad: (.*\n)*  but theirs: None", r"lib\.view_as_real\((.*\n)*.*\.\w+_\("),
    # PyTorch refuses to use the view, even if no gradient depends on its history.
    Parting("only theirs: .*view and its base or another view of its base has been", when=_without_gradient),
    # PyTorch's accumulator of gradients still has the shape that a leaf had before.
    Parting("theirs: .*returned an invalid gradient at index", r"(no_grad|inference_mode)\(\): \w+\.(t|transpose|squeeze|unsqueeze)_\("),
    # PyTorch's gradient of a sign is a tensor of zeros without memory, which cannot be added to.
    Parting("only theirs: .*ZeroTensors are immutable"),
    Parting("only theirs: .*hook 'run' has changed the type of value", r"\.sgn\(\)"),
    # Dtypes that PyTorch's kernels do not mix, in the gradients of these.
    Parting("only theirs: .*addmv input tensors must have the same dtype", "lib.addr|addmv"),
    Parting("only theirs: .*expected scalar type", r"lib\.cross\("),
    # PyTorch's gradient of as_strided is a view of a buffer; so is the result of some compositions.
    Parting("only theirs: .*(A view was created in no_grad mode and is being modified|Can't detach views)", when=_writes_gradient),
    Parting("only theirs: .*(A view was created in no_grad mode and is being modified|Can't detach views)", r"\w+ = lib\.einsum"),
    # Gradients of operands that are not needed; put_ is a composite that reads the former value.
    Parting(r"node hook \d+ of \w+ inputs: ", r"lib\.(stack|cat)\(|\.put_\("),
    # What is saved: PyTorch's a view of the operand, or what it was before it was broadcast.
    Parting("only ours: .*saved tensor that has been detached in-place", r" @ |mm\("),
    Parting("only theirs: .*Inference tensors cannot be saved for backward", r"lib\.cross\(|prelu\("),
    # PyTorch's inverses are column-major.
    Parting("only theirs: .*view size is not compatible", r"lib\.linalg\.\w+\("),
    # Results of reductions along dimensions of size 1 have NumPy's layout.
    Parting("only ours: .*view size is not compatible", r"\.(movedim|permute|transpose|swapaxes|swapdims|t|mT)\b(.*\n)*.*\.(sum|mean|prod|amax|amin|max|min|var|std|logsumexp|norm)\("),
    # A cast to integers has no gradient, but checks like any other whether the view may be used.
    Parting("only ours: .*view and its base or another view of its base has been", r"\.(type|to)\(lib\.u?int|\.(long|int|short|char|byte|bool)\("),
    # What a pass accumulated before it raised.
    Parting("grad: ", r"\.backward\(", when=_raised_in_backward),
    # Numbers that are equal, or zero, except for the last bit of a product.
    Parting(r"\w+ in the end: value: \[[\d ]+\]", r"lib\.cross\((.*\n)*.*\.(arg)?sort\("),
    Parting(r"in the end: value: complex\d+ \(", r"lib\.view_as_complex\((.*\n)*.*\.real > 0\]"),
    Parting("only theirs: .*If your Function modifies inplace an input that is a view", when=_applied_to_result),
    # A custom Function that is refused has cleared the gradient before in PyTorch.
    Parting("grad: ", r"Dirty\w*\.apply", when=_refused_dirty),
    # An index is checked even without elements; PyTorch allocates memory first.
    Parting("IndexError.*is out of bounds.*\n.*setStorage"),
    # Recorded as one operator with two results, so both are treated as not constant.
    Parting("grad: False\n  but theirs: True", "prelu.*(\n.*)*create_graph=True"),
    # A number that a composition multiplies by counts as kept, as everywhere; PyTorch's C++ keeps it otherwise.
    Parting("only ours: .*backward through the graph a second time", r"\b(cumulative_trapezoid|trapezoid|gradient|affine_grid|deg2rad|rad2deg)_?\("),
    # PyTorch's hooks that are registered after it are called with those that were registered before.
    Parting(r"hook \d+ of \w+:", r"register_hook\((.*\n)*\w+\.(t|transpose|swapaxes|swapdims|squeeze|unsqueeze)_\((.*\n)*.*register_hook\("),
    # The inputs of plugrad's formulas: absolute values and angles, not their product.
    Parting("only ours: .*has been modified by an inplace operation", r"lib\.polar\("),
)  # fmt: skip


def known_parting(parted: Any) -> bool:
    return any(
        re.search(parting.text, parted.text)
        and re.search(parting.program, parted.source)
        and (parting.when is None or parting.when(parted))
        for parting in PARTINGS
    )
