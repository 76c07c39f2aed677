"""SciPy and scikit-learn on tensors, in a process of their own: SciPy reads a variable of the
environment when it is imported. Oracle: their results on NumPy's arrays, and finite differences."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

pytest.importorskip("scipy")
pytest.importorskip("plugrad_special")

ROOT = Path(__file__).resolve().parents[3]
FUNCTIONS = [
    "fft.rfft", "integrate.cumulative_simpson", "linalg.block_diag", "optimize.rosen_hess",
    "signal.fftconvolve", "signal.hilbert", "spatial.transform.Rotation",
    "special.betainc", "special.gammaln", "special.logsumexp", "special.ndtr", "special.polygamma",
    "special.zeta", "stats.iqr", "stats.kurtosis", "stats.skew", "stats.quantile", "stats.zscore",
    "cluster.vq.whiten",
]  # fmt: skip
COMPILED = ["signal.savgol_filter", "ndimage.gaussian_filter", "signal.lfilter", "fft.dct"]
TRY = """
import json, sys
from tools.scipy_page import call_of, listed
from tools.scipy_support.trials import try_out
there = listed()
found = {}
for name in json.loads(sys.argv[1]):
    module, _, function = name.rpartition(".")
    outcome = try_out(there[module][function], call_of(module, function, there[module][function]))
    found[name] = [outcome.value, outcome.gradient, outcome.remark]
print(json.dumps(found))
"""
FIT = """
import json, sys
import numpy as np, plugrad, sklearn
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
x = np.random.default_rng(0).normal(size=(9, 3))
y = x.sum(1)
same = []
for made, method in (
    (StandardScaler(), "transform"), (PCA(2), "transform"), (Ridge(solver="svd"), "predict")
):
    expected = getattr(made.fit(x, y), method)(x)
    with sklearn.config_context(array_api_dispatch=True):
        a, b = plugrad.from_numpy(x), plugrad.from_numpy(y)
        found = getattr(made.fit(a, b), method)(a)
    same.append(type(found) is plugrad.Tensor and np.allclose(found.numpy(), expected))
print(json.dumps(same))
"""


def said_by(code: str, *arguments: str) -> Any:
    done = run(
        [sys.executable, "-c", code, *arguments], env={**os.environ, "SCIPY_ARRAY_API": "1"},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_values_and_gradients_of_functions_of_scipy() -> None:
    found = said_by(TRY, json.dumps([*FUNCTIONS, *COMPILED]))
    for name in FUNCTIONS:
        assert found[name] == ["equal", "checked", ""], name
    for name in COMPILED:
        assert found[name] == ["equal", "no", "compiled code"], name


def test_estimators_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    assert said_by(FIT) == [True, True, True]
