"""Results, gradients and errors of single operators that differ."""

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


def _one_column(call: Any) -> bool:
    size = call.args[1]
    return isinstance(size, (list, tuple)) and size[-1] == 1


def _scales_and_pads(call: Any) -> bool:
    args = call.args
    return len(args) > 8 and bool(args[3]) and args[8] is not None


def _largest_of_special(call: Any) -> bool:
    return _is_special(call) and len(call.args) > 4 and call.args[4] == 2


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
    # PyTorch's rows of one column are all the first one.
    Difference("_?upsample_.*_aa", "values", when=_one_column),
    # PyTorch passes over nan where it comes after a number.
    Difference("_?embedding_bag(_forward_only)?", "values", "nan", _largest_of_special),
    # PyTorch counts the indices with those of padding, and looks them up without.
    Difference("_?embedding_bag(_forward_only)?", "gradient: values", when=_scales_and_pads),
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


def known_difference(call: Any, kind: str, details: str) -> bool:
    name = call.op.rpartition(".")[2].rstrip("_")
    return any(
        (re.fullmatch(difference.op, call.op) or re.fullmatch(difference.op, name))
        and re.search(difference.kind, kind)
        and re.search(difference.details, details)
        and (difference.when is None or difference.when(call))
        for difference in DIFFERENCES
    )
