"""Dropout of whole channels, and dropout that keeps mean and variance."""

from __future__ import annotations

from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.normalization import _Dropout


class Dropout1d(_Dropout):
    """In training, zeroes channels of signals (N, C, L) or (C, L), each with probability `p`.

    >>> import plugrad
    >>> plugrad.nn.Dropout1d(0.4)(plugrad.ones(2, 3, 8)).shape
    plugrad.Size([2, 3, 8])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """In training, zeroes channels of images (N, C, H, W), each with probability `p`.

    >>> import plugrad
    >>> plugrad.nn.Dropout2d(0.4)(plugrad.ones(2, 3, 8, 6)).shape
    plugrad.Size([2, 3, 8, 6])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """In training, zeroes channels of volumes (N, C, D, H, W), each with probability `p`.

    >>> import plugrad
    >>> plugrad.nn.Dropout3d(0.4)(plugrad.ones(2, 3, 8, 6, 4)).shape
    plugrad.Size([2, 3, 8, 6, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for `SELU` (Klambauer et al. 2017).

    >>> import plugrad
    >>> plugrad.nn.AlphaDropout(0.4)(plugrad.ones(2, 3)).shape
    plugrad.Size([2, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels of (N, C, ...).

    >>> import plugrad
    >>> plugrad.nn.FeatureAlphaDropout(0.4)(plugrad.ones(2, 3, 4)).shape
    plugrad.Size([2, 3, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
