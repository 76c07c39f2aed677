"""Writes core/plugrad/ops/needs.json, the operators that each decomposition calls:
`python tools/needs.py`.

Run it again when an operator's decomposition has changed; a test fails until then.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import plugrad
from plugrad.dispatch.backends.availability import NEEDS_FILE
from plugrad.testing.cases import OpCase, OpSample, T, core_cases
from plugrad.testing.needs import trace_needs

# Inspected only for operators that are not defined for real numbers.
COMPLEX = ("complex128",)


M = T((2, 3))
FLAT = T((4,), low=0.5)
SQUARE = T((2, 2))
LINE, IMAGE, VOLUME = T((1, 1, 3)), T((1, 1, 2, 3)), T((1, 1, 2, 2, 3))
BARE = T((2,), requires_grad=False)
WHOLE = T((2,), low=1, dtype="int64")
# Calls of operators without cases in the tables of samples: random numbers, devices, memory.
OTHERS: dict[str, tuple[Any, ...]] = {
    "empty_strided": ((2, 3), (1, 2)),
    "empty_like": (M,),
    "new_empty": (M, (2,)),
    "rand_like": (M,),
    "randn_like": (M,),
    "randint_like.default": (M, 5),
    "randint_like.low_dtype": (M, 1, 5),
    "normal.Tensor_Tensor": (FLAT, FLAT),
    "normal.Tensor_float": (FLAT, 1.0),
    "normal.float_Tensor": (1.0, FLAT),
    "normal.float_float": (1.0, 1.0, (2,)),
    "randint.default": (5, (2,)),
    "randint.low": (1, 5, (2,)),
    "randperm": (4,),
    "multinomial": (FLAT, 2),
    "uniform_": (BARE,),
    "normal_": (BARE,),
    "exponential_": (BARE,),
    "bernoulli.default": (T((4,), low=0.0, high=1.0),),
    "bernoulli_.Tensor": (BARE, T((2,), low=0.0, high=1.0, requires_grad=False)),
    "bernoulli_.float": (BARE, 0.5),
    "random_.default": (BARE,),
    "random_.to": (BARE, 5),
    "random_.from": (BARE, 1, 5),
    "native_dropout_backward": (M, T((2, 3), dtype="bool"), 2.0),
    "bitwise_and.Scalar_Tensor": (3, WHOLE),
    "bitwise_or.Scalar_Tensor": (3, WHOLE),
    "bitwise_xor.Scalar_Tensor": (3, WHOLE),
    "bitwise_left_shift.Scalar_Tensor": (3, WHOLE),
    "bitwise_right_shift.Scalar_Tensor": (3, WHOLE),
    "bernoulli.p": (M, 0.5),
    "fill_.Scalar": (BARE, 1),
    "fill_.Tensor": (BARE, T((), requires_grad=False)),
    "zero_": (BARE,),
    "fill_diagonal_": (T((5, 2), requires_grad=False), 1, True),
    "ger": (FLAT, FLAT),
    "dropout": (M, 0.5, True),
    "native_dropout": (M, 0.5, True),
    "divide.Scalar_mode": (M, 2),
    "meshgrid": ([FLAT, FLAT],),
    "_to_device": (M, plugrad.device("cpu")),
    "byte": (M,),
    "swapaxes_": (T((2, 3), requires_grad=False), 0, 1),
    "swapdims_": (T((2, 3), requires_grad=False), 0, 1),
    "numpy_T": (M,),
    "mT": (M,),
    "matrix_H": (M,),
    "as_strided_": (T((2, 3), requires_grad=False), (3,), (1,)),
    "alias": (M,),
    # The tables have compositions of these operators with results that do not depend on signs and
    # phases.
    "linalg_eig": (SQUARE,),
    "_linalg_eigvals": (T((2, 2), requires_grad=False),),
    "linalg_eigvals": (SQUARE,),
    "svd": (M,),
    # The tables have them under the names that take sizes or factors.
    "upsample_nearest3d.vec": (VOLUME, (2, 2, 2), None),
    "_upsample_nearest_exact1d.vec": (LINE, (2,), None),
    "_upsample_nearest_exact3d.vec": (VOLUME, (2, 2, 2), None),
    "upsample_trilinear3d.vec": (VOLUME, (2, 2, 2), False, None),
    "upsample_bicubic2d.vec": (IMAGE, (2, 2), False, None),
    "_upsample_bilinear2d_aa.vec": (IMAGE, (2, 2), False, None),
    "_upsample_bicubic2d_aa.vec": (IMAGE, (2, 2), False, None),
    "_upsample_lanczos2d_aa.vec": (IMAGE, (2, 2), False, None),
    # Nothing calls them: gradients use `_resample_backward`.
    "upsample_nearest1d_backward": (LINE, (3,), (1, 1, 4)),
    "upsample_nearest2d_backward": (IMAGE, (2, 3), (1, 1, 4, 4)),
    "upsample_nearest3d_backward": (VOLUME, (2, 2, 3), (1, 1, 4, 4, 4)),
    "_upsample_nearest_exact1d_backward": (LINE, (3,), (1, 1, 4)),
    "_upsample_nearest_exact2d_backward": (IMAGE, (2, 3), (1, 1, 4, 4)),
    "_upsample_nearest_exact3d_backward": (VOLUME, (2, 2, 3), (1, 1, 4, 4, 4)),
    "upsample_linear1d_backward": (LINE, (3,), (1, 1, 4), False),
    "upsample_bilinear2d_backward": (IMAGE, (2, 3), (1, 1, 4, 4), False),
    "upsample_trilinear3d_backward": (VOLUME, (2, 2, 3), (1, 1, 4, 4, 4), False),
    "upsample_bicubic2d_backward": (IMAGE, (2, 3), (1, 1, 4, 4), False),
    "_upsample_bilinear2d_aa_backward": (IMAGE, (2, 3), (1, 1, 4, 4), False),
    "_upsample_bicubic2d_aa_backward": (IMAGE, (2, 3), (1, 1, 4, 4), False),
    "_upsample_lanczos2d_aa_backward": (IMAGE, (2, 3), (1, 1, 4, 4), False),
    "_max_pool1d": (T((1, 6)), 2, 2, 1, 1, 4),
    # Two sequences, one shorter than the other.
    "_lstm_layer": (T((3, 4)), T((2, 1)), T((2, 1)), T((4, 1)), (2, 1), False),
    "_lstm_layer_backward": (
        *(T((3, 1)), T((2, 1)), T((2, 1))),
        *(T((2, 1)), T((2, 1)), T((4, 1)), T((3, 1)), T((18, 1))),
        *((2, 1), False, (True,) * 4),
    ),
    "_gru_layer": (T((3, 3)), T((2, 1)), T((3, 1)), T((3,)), (2, 1), False),
    "_gru_layer_backward": (
        *(T((3, 1)), T((2, 1)), T((2, 1)), T((3, 1)), T((3, 1)), T((12, 1))),
        *((2, 1), False, (True,) * 4),
    ),
    "_update_sgd": ([BARE], [BARE], [BARE]),
    "_update_adam": (*([BARE] for _ in range(5)), [0.1], [0.1]),
}
# By keyword.
OPTIONS: dict[str, dict[str, Any]] = {
    "divide.Scalar_mode": {"rounding_mode": "floor"},
    "_update_sgd": {
        **dict.fromkeys(("lr", "momentum", "dampening", "weight_decay"), 0.5),
        **dict.fromkeys(("nesterov", "maximize"), True),
    },
    "_update_adam": {
        **dict.fromkeys(("beta1", "beta2", "decay", "weight_decay"), 0.5),
        "maximize": True,
    },
}


def all_cases() -> list[OpCase]:
    """The tables' cases, and cases of each operator that they do not call."""
    others = [
        OpCase(f"plugrad::{name}", [OpSample(args, OPTIONS.get(name, {}))])
        for name, args in OTHERS.items()
    ]
    return [*core_cases(), *others]


def render() -> str:
    """The expected contents of the file."""
    cases = all_cases()
    needs = {**trace_needs(cases, COMPLEX), **trace_needs(cases)}
    lines = [
        f"  {json.dumps(name)}: {json.dumps(called)}" for name, called in sorted(needs.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    Path(NEEDS_FILE).write_text(render(), encoding="utf-8")
