"""Autocast's policy for each operator: PyTorch's lists, and a decision for every other operator.

Each list has the full names of the operators with one policy:

    lower_precision_fp   floating inputs are cast to the dtype of the region
    fp32                 floating inputs are cast to float32
    fp32_set_opt_dtype   `dtype` is float32, unless it was given or the input does not autocast
    promote              floating inputs are cast to the widest dtype among them
    banned               a RuntimeError, which names a replacement

float64 is never cast. Operators in no list run in the dtypes that they get, including in-place
operators, because their result already has a dtype. `tests/core/amp/test_lists.py` requires a
decision on every operator, and compares the lists with PyTorch's.
"""

from __future__ import annotations

# Interpreted: it is tables.
from typing import Final

from plugrad.dispatch import keys
from plugrad.dispatch.operator import Operator


def _by_operator(names: dict[str, str]) -> dict[str, str]:
    return {name: policy for policy, text in names.items() for name in text.split()}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# `_einsum`, `_tensordot` and `_matmul_hn` are what plugrad calls parts of operators that PyTorch
# has on its lists under other names.
_CPU: Final = _by_operator(
    {
        "lower_precision_fp": """
    _matmul_hn _matmul_nh addbmm addmm baddbmm bmm conv1d conv1d.padding conv2d conv2d.padding
    conv_transpose2d.input linear matmul mm prelu
    scaled_dot_product_attention
    conv3d conv3d.padding conv_transpose1d conv_transpose3d.input
    conv_tbc
    """,
        "fp32": """
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d fractional_max_pool2d fractional_max_pool3d
    max_pool3d max_unpool2d max_unpool3d
    binary_cross_entropy binary_cross_entropy_with_logits cdist cross_entropy_loss huber_loss
    inverse kl_div l1_loss linalg_inv linalg_solve mse_loss nll_loss polar prod smooth_l1_loss
    trace view_as_complex
    nanquantile nanquantile.scalar quantile quantile.scalar
    fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft
    fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn stft.center
    _lu_with_info cholesky cholesky_inverse cholesky_solve geqrf linalg_cholesky
    linalg_cholesky_ex linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
    linalg_householder_product linalg_inv_ex linalg_qr linalg_svd linalg_svdvals lu_solve orgqr
    ormqr qr svd triangular_solve
    grid_sampler grid_sampler_2d grid_sampler_3d
    cosine_embedding_loss ctc_loss.IntList ctc_loss.Tensor hinge_embedding_loss
    margin_ranking_loss multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward
    poisson_nll_loss soft_margin_loss triplet_margin_loss
    nll_loss2d
    reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d
    linalg_cond linalg_cond.p_str linalg_lstsq linalg_matrix_rank
    linalg_matrix_rank.atol_rtol_float linalg_matrix_rank.atol_rtol_tensor
    linalg_matrix_rank.tol_tensor linalg_tensorinv linalg_tensorsolve pinverse
    """,
        "promote": """
    cat index_copy stack
    """,
    }
)

# For CUDA, and for every backend except the CPU.
_ACCELERATOR: Final = _by_operator(
    {
        "lower_precision_fp": """
    _einsum _matmul_hn _matmul_nh addbmm addmm addmv addr baddbmm bmm conv1d conv2d
    conv_transpose2d.input convolution linear matmul mm mv prelu
    scaled_dot_product_attention
    conv3d conv_transpose1d conv_transpose3d.input
    conv_tbc gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell
    """,
        "fp32": """
    acos asin binary_cross_entropy_with_logits cdist cosh dist exp expm1 group_norm huber_loss
    kl_div l1_loss layer_norm log log10 log1p log2 logsumexp mse_loss native_layer_norm nll_loss
    norm.str pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor reciprocal rms_norm rsqrt sinh
    smooth_l1_loss softplus tan
    frobenius_norm.dim nuclear_norm nuclear_norm.dim pdist renorm
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d
    upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
    cosine_embedding_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss
    multilabel_margin_loss poisson_nll_loss soft_margin_loss triplet_margin_loss
    erfinv
    cosine_similarity pdist
    nll_loss2d
    """,
        "fp32_set_opt_dtype": """
    cumprod cumsum linalg_vector_norm log_softmax.int norm prod softmax.int sum
    """,
        "promote": """
    _tensordot addcdiv addcmul atan2 cross dot index_put scatter_add vdot
    grid_sampler
    bilinear
    """,
        "banned": """
    binary_cross_entropy
    """,
    }
)

# Decomposed here, one kernel in PyTorch: if it is in no list, its parts do not autocast.
_WHOLE: Final = _names(
    """
    adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d
    max_unpool2d max_unpool3d
    addmv addr allclose as_strided as_strided_scatter bucketize.Scalar bucketize.Tensor celu deg2rad
    dist empty_strided glu isin.Tensor_Tensor isneginf isposinf kthvalue ldexp.Tensor
    linalg_cross mish nonzero.as_tuple norm norm.str polar put rad2deg rot90 rsub.Tensor
    scatter.reduce scatter.value_reduce scatter_reduce.two searchsorted.Scalar searchsorted.Tensor
    where

    _histogramdd_from_bin_tensors histogram.bins_tensor index_reduce mode nanmedian.dim renorm
    constant_pad_nd fill.Scalar fill.Tensor
    linalg_householder_product orgqr ormqr
    rrelu rrelu_with_noise multilabel_margin_loss_forward
    mvlgamma
    embedding_bag embedding_bag.padding_idx
    """
)

# Decomposed here and in PyTorch: if it is in no list, its parts decide.
PARTS_DECIDE: Final = _names(
    """
    alias_copy as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy permute_copy
    select_copy.int slice_copy.Tensor split_copy.Tensor split_with_sizes_copy squeeze_copy
    squeeze_copy.dim squeeze_copy.dims t_copy transpose_copy.int unbind_copy.int unfold_copy
    unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy
    adaptive_avg_pool1d adaptive_avg_pool3d adaptive_max_pool1d conv3d.padding max_pool1d
    max_pool1d_with_indices max_pool3d
    _einsum _tensordot absolute adaptive_avg_pool2d adjoint arccos arccosh arcsin arcsinh arctan
    arctan2 arctanh argsort argwhere atleast_1d atleast_1d.Sequence atleast_2d
    atleast_2d.Sequence atleast_3d atleast_3d.Sequence avg_pool1d batch_norm bfloat16 bool
    broadcast_to byte cdouble cfloat char chunk clip clip.Tensor column_stack concat concatenate
    conj contiguous conv1d.padding conv2d.padding cpu cross cross_entropy_loss det diag diagflat
    diff divide.Scalar divide.Scalar_mode divide.Tensor divide.Tensor_mode double dropout
    dsplit.array dsplit.int dstack expand_as fix flatten.using_ints fliplr flipud float
    float_power.Scalar float_power.Tensor_Scalar float_power.Tensor_Tensor ger greater.Scalar
    greater.Tensor greater_equal.Scalar greater_equal.Tensor group_norm half hsplit.array
    hsplit.int hstack inner int inverse isclose isreal kron layer_norm less.Scalar less.Tensor
    less_equal.Scalar less_equal.Tensor linalg_solve log_softmax.int logdet logsigmoid long mH
    mT matrix_H matrix_power max.other max_pool2d meshgrid meshgrid.indexing min.other
    moveaxis.int moveaxis.intlist movedim.int movedim.intlist msort multiply.Scalar
    multiply.Tensor nanmean narrow negative not_equal.Scalar not_equal.Tensor numpy_T outer
    positive ravel rdiv real relu6 repeat_interleave.self_Tensor repeat_interleave.self_int
    reshape reshape_as resolve_conj resolve_neg rms_norm row_stack selu short softmax.int
    split.sizes square std std.dim std_mean std_mean.dim subtract.Scalar subtract.Tensor
    sum_to_size swapaxes swapdims take_along_dim tensor_split.indices tensor_split.sections
    tensor_split.tensor_indices_or_sections tile to.device to.dtype to.other true_divide.Scalar
    true_divide.Tensor type_as unflatten.int unsafe_chunk var var.dim var_mean var_mean.dim
    view_as vsplit.array vsplit.int vstack

    _block_diag _cartesian_prod _chain_matmul _unravel_index combinations corrcoef cov
    cumulative_trapezoid.dx cumulative_trapezoid.x gradient.array gradient.scalararray
    gradient.scalarint gradient.scalarrayarray gradient.scalarrayint gradient.tensorarray
    gradient.tensorarrayint linalg_vander nanquantile nanquantile.scalar quantile quantile.scalar
    trapezoid.dx trapezoid.x trapz.dx trapz.x vander
    fft_fft fft_fft2 fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2
    fft_ifftn fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn
    fft_rfft fft_rfft2 fft_rfftn istft stft.center
    _lu_with_info cholesky linalg_cholesky linalg_cholesky_ex linalg_eigh linalg_eigvals
    linalg_eigvalsh linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_lu
    linalg_lu_factor linalg_lu_factor_ex linalg_solve_ex linalg_svd linalg_svdvals lu lu_solve
    lu_unpack qr slogdet svd triangular_solve
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d
    upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
    _upsample_lanczos2d_aa upsample_nearest1d.vec upsample_nearest2d.vec upsample_nearest3d.vec
    _upsample_nearest_exact1d.vec _upsample_nearest_exact2d.vec _upsample_nearest_exact3d.vec
    upsample_linear1d.vec upsample_bilinear2d.vec upsample_trilinear3d.vec upsample_bicubic2d.vec
    _upsample_bilinear2d_aa.vec _upsample_bicubic2d_aa.vec _upsample_lanczos2d_aa.vec
    upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward
    _upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward
    _upsample_nearest_exact3d_backward upsample_linear1d_backward upsample_bilinear2d_backward
    upsample_trilinear3d_backward upsample_bicubic2d_backward _upsample_bilinear2d_aa_backward
    _upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa_backward affine_grid_generator
    grid_sampler_2d grid_sampler_3d
    frobenius_norm.dim linalg_cond linalg_cond.p_str linalg_diagonal linalg_lstsq
    linalg_matrix_rank linalg_matrix_rank.atol_rtol_float linalg_matrix_rank.atol_rtol_tensor
    linalg_matrix_rank.tol_tensor linalg_pinv linalg_pinv.atol_rtol_float
    linalg_pinv.rcond_tensor linalg_tensorinv linalg_tensorsolve matrix_exp nuclear_norm
    nuclear_norm.dim pinverse
    alpha_dropout feature_alpha_dropout feature_dropout ctc_loss.IntList
    ctc_loss.Tensor
    bilinear channel_shuffle cosine_similarity instance_norm native_channel_shuffle
    pairwise_distance pdist pixel_shuffle pixel_unshuffle
    """
    # Other elements of the same memory, bags, parts, padding.
    """
    view.dtype view_copy.dtype hash_tensor nonzero_static empty_permuted segment_reduce
    reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
    replication_pad3d _safe_softmax norm_except_dim _weight_norm _embedding_bag
    _embedding_bag_forward_only grid_sampler_2d_backward grid_sampler_3d_backward
    gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell
    """
)

# Not decomposed, and on no list.
UNTOUCHED: Final = _names(
    """
    avg_pool3d_backward col2im im2col max_pool3d_with_indices max_pool3d_with_indices_backward
    _as_strided _as_strided_scatter _conj _fused_lists _fused_rms_norm _fused_rms_norm_backward
    _linalg_solve _log_softmax _log_softmax_backward_data
    _native_batch_norm_legit_functional _neg_view _softmax _softmax_backward_data _strided_sum
    _to_copy _to_device _unsafe_view abs acosh add.Scalar add.Tensor alias all amax amin aminmax
    angle any arange argmax argmin asinh atan atanh avg_pool2d avg_pool2d_backward bernoulli
    bernoulli.p binary_cross_entropy_backward bitwise_and.Scalar bitwise_and.Scalar_Tensor
    bitwise_and.Tensor bitwise_left_shift.Scalar_Tensor bitwise_left_shift.Tensor
    bitwise_left_shift.Tensor_Scalar bitwise_not bitwise_or.Scalar bitwise_or.Scalar_Tensor
    bitwise_or.Tensor bitwise_right_shift.Scalar_Tensor bitwise_right_shift.Tensor
    bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar bitwise_xor.Scalar_Tensor
    bitwise_xor.Tensor ceil clamp clamp.Tensor clamp_max clamp_max.Tensor clamp_min
    clamp_min.Tensor clone complex conj_physical convolution_backward copysign.Scalar
    copysign.Tensor cos count_nonzero cummax cummin detach diag_embed diagonal diagonal_backward
    diagonal_scatter div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode elu elu_backward
    embedding embedding_dense_backward empty empty_like eq.Scalar eq.Tensor equal erf erfc exp2
    expand eye flip floor floor_divide floor_divide.Scalar floor_divide.Scalar_Tensor fmax fmin
    fmod.Scalar fmod.Tensor frac full full_like gather ge.Scalar ge.Tensor gelu gelu_backward
    gt.Scalar gt.Tensor hardsigmoid hardswish hardtanh hardtanh_backward hypot imag index.Tensor
    index_add index_fill.int_Scalar index_fill.int_Tensor index_select isfinite isinf isnan
    le.Scalar le.Tensor leaky_relu leaky_relu_backward lerp.Scalar lerp.Tensor linalg_det
    linear_backward linspace log_sigmoid logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor logit logspace lt.Scalar lt.Tensor masked_fill.Scalar masked_fill.Tensor
    masked_scatter masked_select max max.dim max_pool2d_with_indices
    max_pool2d_with_indices_backward maximum mean median median.dim min min.dim minimum
    mse_loss_backward mul.Scalar mul.Tensor multinomial nan_to_num nansum native_batch_norm
    native_batch_norm_backward native_dropout native_dropout_backward native_group_norm
    native_group_norm_backward native_layer_norm_backward ne.Scalar ne.Tensor neg new_empty
    new_full new_ones new_zeros nll_loss_backward nll_loss_forward nonzero one_hot ones
    ones_like permute rand rand_like randint randint.low
    randint_like randint_like.low_dtype randn randn_like randperm range relu remainder.Scalar
    remainder.Scalar_Tensor remainder.Tensor repeat repeat_interleave.Tensor roll round
    round.decimals rsub.Scalar scatter.src scatter.value select.int select_backward
    select_scatter sgn sigmoid sigmoid_backward sign signbit silu silu_backward sin sinc
    slice.Tensor slice_backward slice_scatter softplus_backward sort split.Tensor split_with_sizes
    sqrt squeeze squeeze.dim squeeze.dims std.correction std_mean.correction sub.Scalar sub.Tensor
    t take tanh tanh_backward threshold threshold_backward topk transpose.int tril tril_indices
    triu triu_indices trunc unbind.int unfold unsafe_split.Tensor unsafe_split_with_sizes
    unsqueeze var.correction
    var_mean.correction view view_as_real where.Scalar where.ScalarOther where.ScalarSelf
    where.self xlogy.Scalar_Other xlogy.Scalar_Self xlogy.Tensor zeros zeros_like

    _histogramdd_bin_edges _histogramdd_from_bin_cts histc histogram.bin_ct
    _unique2 _unique_consecutive bincount logcumsumexp nanmedian unique_dim
    linalg_matrix_exp linalg_pinv.atol_rtol_tensor new_empty_strided
    _fft_c2c _fft_c2r _fft_r2c bartlett_window blackman_window fft_fftfreq fft_rfftfreq
    hamming_window hann_window kaiser_window
    _check_matrices _linalg_cholesky _linalg_eigh _linalg_eigvals _linalg_ldl_factor
    _linalg_lstsq _linalg_lu_factor _linalg_svd _lu_permutation linalg_ldl_solve
    linalg_lu_solve linalg_slogdet linalg_solve_triangular
    _resample _resample_backward _max_pool1d
    _scaled_dot_product_attention _scaled_dot_product_attention_backward
    _ctc_loss _ctc_loss.Tensor _ctc_loss_backward _ctc_loss_backward.Tensor
    _gru_layer _gru_layer_backward _lstm_layer _lstm_layer_backward
    hardshrink hardshrink_backward softshrink softshrink_backward
    digamma frexp.Tensor gcd heaviside i0 igamma igammac lcm lgamma nextafter polygamma special_i1
    """
    # Random numbers.
    """
    _dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial
    normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor normal.float_float poisson
    _embedding_bag_places
    """
    # Other elements of the same memory, bags, parts, padding.
    """
    _view_dtype
    """
)


def policy_of(op: Operator, device_type: str) -> str:
    """Autocast's policy for one of plugrad's operators on a device type; "" for none, and "whole"
    for an operator that runs as outside a region."""
    if op.namespace != "plugrad":
        return ""
    table = _CPU if device_type == "cpu" else _ACCELERATOR
    policy = table.get(op.full_name)
    if policy is not None:
        return policy
    if op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is None:
        return ""
    return "whole" if op.schema.mutates or op.full_name in _WHOLE else ""


def list_of(device_type: str) -> dict[str, str]:
    """The policies for a device type, by full name of the operator."""
    return dict(_CPU if device_type == "cpu" else _ACCELERATOR)


def decisions(op: Operator) -> list[str]:
    """Where an operator of plugrad's own is decided on; nowhere is a mistake, twice as well."""
    name = op.full_name
    lists = (name in _CPU) + (name in _ACCELERATOR)
    if op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is None:
        lists *= 2  # an operator that no list names needs no decision
    places = {
        "lists": lists >= 2,
        "whole": name in _WHOLE,
        "parts decide": name in PARTS_DECIDE or name.startswith("_foreach_"),
        "untouched": name in UNTOUCHED,
    }
    return [place for place, found in places.items() if found]
