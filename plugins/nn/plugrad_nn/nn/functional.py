"""The layers as plain functions, with the signatures of torch.nn.functional."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import grad as grad
from plugrad_nn.nn.functions.activation import celu as celu
from plugrad_nn.nn.functions.activation import elu as elu
from plugrad_nn.nn.functions.activation import gelu as gelu
from plugrad_nn.nn.functions.activation import glu as glu
from plugrad_nn.nn.functions.activation import hardsigmoid as hardsigmoid
from plugrad_nn.nn.functions.activation import hardswish as hardswish
from plugrad_nn.nn.functions.activation import hardtanh as hardtanh
from plugrad_nn.nn.functions.activation import leaky_relu as leaky_relu
from plugrad_nn.nn.functions.activation import log_softmax as log_softmax
from plugrad_nn.nn.functions.activation import logsigmoid as logsigmoid
from plugrad_nn.nn.functions.activation import mish as mish
from plugrad_nn.nn.functions.activation import prelu as prelu
from plugrad_nn.nn.functions.activation import relu as relu
from plugrad_nn.nn.functions.activation import relu6 as relu6
from plugrad_nn.nn.functions.activation import selu as selu
from plugrad_nn.nn.functions.activation import sigmoid as sigmoid
from plugrad_nn.nn.functions.activation import silu as silu
from plugrad_nn.nn.functions.activation import softmax as softmax
from plugrad_nn.nn.functions.activation import softplus as softplus
from plugrad_nn.nn.functions.activation import tanh as tanh
from plugrad_nn.nn.functions.activation import threshold as threshold
from plugrad_nn.nn.functions.adaptive import adaptive_avg_pool1d as adaptive_avg_pool1d
from plugrad_nn.nn.functions.adaptive import adaptive_avg_pool2d as adaptive_avg_pool2d
from plugrad_nn.nn.functions.adaptive import adaptive_avg_pool3d as adaptive_avg_pool3d
from plugrad_nn.nn.functions.adaptive import adaptive_max_pool1d as adaptive_max_pool1d
from plugrad_nn.nn.functions.adaptive import (
    adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
)
from plugrad_nn.nn.functions.adaptive import adaptive_max_pool2d as adaptive_max_pool2d
from plugrad_nn.nn.functions.adaptive import (
    adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
)
from plugrad_nn.nn.functions.adaptive import adaptive_max_pool3d as adaptive_max_pool3d
from plugrad_nn.nn.functions.adaptive import (
    adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices,
)
from plugrad_nn.nn.functions.attention import (
    multi_head_attention_forward as multi_head_attention_forward,
)
from plugrad_nn.nn.functions.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from plugrad_nn.nn.functions.channel import channel_shuffle as channel_shuffle
from plugrad_nn.nn.functions.channel import native_channel_shuffle as native_channel_shuffle
from plugrad_nn.nn.functions.channel import pixel_shuffle as pixel_shuffle
from plugrad_nn.nn.functions.channel import pixel_unshuffle as pixel_unshuffle
from plugrad_nn.nn.functions.convolution import IntOrPair as IntOrPair
from plugrad_nn.nn.functions.convolution import conv1d as conv1d
from plugrad_nn.nn.functions.convolution import conv2d as conv2d
from plugrad_nn.nn.functions.convolution import conv3d as conv3d
from plugrad_nn.nn.functions.convolution import conv_tbc as conv_tbc
from plugrad_nn.nn.functions.convolution import conv_transpose1d as conv_transpose1d
from plugrad_nn.nn.functions.convolution import conv_transpose2d as conv_transpose2d
from plugrad_nn.nn.functions.convolution import conv_transpose3d as conv_transpose3d
from plugrad_nn.nn.functions.convolution import repeated as repeated
from plugrad_nn.nn.functions.dropout import alpha_dropout as alpha_dropout
from plugrad_nn.nn.functions.dropout import dropout as dropout
from plugrad_nn.nn.functions.dropout import dropout1d as dropout1d
from plugrad_nn.nn.functions.dropout import dropout2d as dropout2d
from plugrad_nn.nn.functions.dropout import dropout3d as dropout3d
from plugrad_nn.nn.functions.dropout import feature_alpha_dropout as feature_alpha_dropout
from plugrad_nn.nn.functions.dropout import hardshrink as hardshrink
from plugrad_nn.nn.functions.dropout import rrelu as rrelu
from plugrad_nn.nn.functions.dropout import rrelu_ as rrelu_
from plugrad_nn.nn.functions.dropout import softmin as softmin
from plugrad_nn.nn.functions.dropout import softshrink as softshrink
from plugrad_nn.nn.functions.dropout import softsign as softsign
from plugrad_nn.nn.functions.dropout import tanhshrink as tanhshrink
from plugrad_nn.nn.functions.likelihood_loss import ctc_loss as ctc_loss
from plugrad_nn.nn.functions.likelihood_loss import gaussian_nll_loss as gaussian_nll_loss
from plugrad_nn.nn.functions.likelihood_loss import linear_cross_entropy as linear_cross_entropy
from plugrad_nn.nn.functions.likelihood_loss import poisson_nll_loss as poisson_nll_loss
from plugrad_nn.nn.functions.loss import binary_cross_entropy as binary_cross_entropy
from plugrad_nn.nn.functions.loss import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from plugrad_nn.nn.functions.loss import cross_entropy as cross_entropy
from plugrad_nn.nn.functions.loss import huber_loss as huber_loss
from plugrad_nn.nn.functions.loss import kl_div as kl_div
from plugrad_nn.nn.functions.loss import l1_loss as l1_loss
from plugrad_nn.nn.functions.loss import mse_loss as mse_loss
from plugrad_nn.nn.functions.loss import nll_loss as nll_loss
from plugrad_nn.nn.functions.loss import smooth_l1_loss as smooth_l1_loss
from plugrad_nn.nn.functions.margin_loss import cosine_embedding_loss as cosine_embedding_loss
from plugrad_nn.nn.functions.margin_loss import hinge_embedding_loss as hinge_embedding_loss
from plugrad_nn.nn.functions.margin_loss import margin_ranking_loss as margin_ranking_loss
from plugrad_nn.nn.functions.margin_loss import multi_margin_loss as multi_margin_loss
from plugrad_nn.nn.functions.margin_loss import multilabel_margin_loss as multilabel_margin_loss
from plugrad_nn.nn.functions.margin_loss import (
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
)
from plugrad_nn.nn.functions.margin_loss import soft_margin_loss as soft_margin_loss
from plugrad_nn.nn.functions.margin_loss import triplet_margin_loss as triplet_margin_loss
from plugrad_nn.nn.functions.margin_loss import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from plugrad_nn.nn.functions.normalization import batch_norm as batch_norm
from plugrad_nn.nn.functions.normalization import group_norm as group_norm
from plugrad_nn.nn.functions.normalization import instance_norm as instance_norm
from plugrad_nn.nn.functions.normalization import layer_norm as layer_norm
from plugrad_nn.nn.functions.normalization import local_response_norm as local_response_norm
from plugrad_nn.nn.functions.normalization import rms_norm as rms_norm
from plugrad_nn.nn.functions.padding import pad as pad
from plugrad_nn.nn.functions.pooling import avg_pool1d as avg_pool1d
from plugrad_nn.nn.functions.pooling import avg_pool2d as avg_pool2d
from plugrad_nn.nn.functions.pooling import avg_pool3d as avg_pool3d
from plugrad_nn.nn.functions.pooling import lp_pool1d as lp_pool1d
from plugrad_nn.nn.functions.pooling import lp_pool2d as lp_pool2d
from plugrad_nn.nn.functions.pooling import lp_pool3d as lp_pool3d
from plugrad_nn.nn.functions.pooling import max_pool1d as max_pool1d
from plugrad_nn.nn.functions.pooling import max_pool1d_with_indices as max_pool1d_with_indices
from plugrad_nn.nn.functions.pooling import max_pool2d as max_pool2d
from plugrad_nn.nn.functions.pooling import max_pool2d_with_indices as max_pool2d_with_indices
from plugrad_nn.nn.functions.pooling import max_pool3d as max_pool3d
from plugrad_nn.nn.functions.pooling import max_pool3d_with_indices as max_pool3d_with_indices
from plugrad_nn.nn.functions.products import grouped_mm as grouped_mm
from plugrad_nn.nn.functions.resampling import affine_grid as affine_grid
from plugrad_nn.nn.functions.resampling import grid_sample as grid_sample
from plugrad_nn.nn.functions.resampling import interpolate as interpolate
from plugrad_nn.nn.functions.resampling import upsample as upsample
from plugrad_nn.nn.functions.resampling import upsample_bilinear as upsample_bilinear
from plugrad_nn.nn.functions.resampling import upsample_nearest as upsample_nearest
from plugrad_nn.nn.functions.unpooling import fold as fold
from plugrad_nn.nn.functions.unpooling import fractional_max_pool2d as fractional_max_pool2d
from plugrad_nn.nn.functions.unpooling import (
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
)
from plugrad_nn.nn.functions.unpooling import fractional_max_pool3d as fractional_max_pool3d
from plugrad_nn.nn.functions.unpooling import (
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
)
from plugrad_nn.nn.functions.unpooling import max_unpool1d as max_unpool1d
from plugrad_nn.nn.functions.unpooling import max_unpool2d as max_unpool2d
from plugrad_nn.nn.functions.unpooling import max_unpool3d as max_unpool3d
from plugrad_nn.nn.functions.unpooling import unfold as unfold
from plugrad_nn.nn.functions.vector import bilinear as bilinear
from plugrad_nn.nn.functions.vector import cosine_similarity as cosine_similarity
from plugrad_nn.nn.functions.vector import embedding as embedding
from plugrad_nn.nn.functions.vector import embedding_bag as embedding_bag
from plugrad_nn.nn.functions.vector import gumbel_softmax as gumbel_softmax
from plugrad_nn.nn.functions.vector import normalize as normalize
from plugrad_nn.nn.functions.vector import one_hot as one_hot
from plugrad_nn.nn.functions.vector import pairwise_distance as pairwise_distance
from plugrad_nn.nn.functions.vector import pdist as pdist
from plugrad_nn.nn.overridable import overridable

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "grouped_mm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "native_channel_shuffle",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

celu_ = plugrad.celu_
elu_ = plugrad.elu_
hardtanh_ = plugrad.hardtanh_
leaky_relu_ = plugrad.leaky_relu_
relu_ = plugrad.relu_
selu_ = plugrad.selu_
threshold_ = plugrad.threshold_


@overridable
def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`input @ weight.T + bias`; input (..., I), weight (O, I), bias (O), result (..., O).

    Args:
        input: (..., I).
        weight: (O, I), or (I) for a result without the last dimension.
        bias: (O); only with a `weight` of two dimensions.
        out: where the result is written; a new tensor by default.

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> import plugrad
    >>> x, weight = plugrad.tensor([1.0, 2.0]), plugrad.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> plugrad.nn.functional.linear(x, weight, plugrad.tensor([0.0, 10.0]))
    tensor([ 1., 13.])
    """
    return plugrad.linear(input, weight, bias, out=out)
