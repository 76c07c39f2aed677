"""Random chains of views, conjugates, parts and writes, against PyTorch: values and bits of every
view, and the gradient through all of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad

Step = Callable[[Any, Any, list[Any], random.Random], Any]


def _number(v: Any) -> Any:
    return 2 - 1j if v.is_complex() else 2


def _from_memory(v: Any) -> Any:
    if v.numel() < 2 or not v.is_contiguous():
        return v
    return v.as_strided((2,), (1,), v.storage_offset())


def _write_from_another(v: Any, pool: list[Any], rng: random.Random) -> Any:
    w = rng.choice(pool)
    if w.shape == v.shape and (v.is_complex() or not w.is_complex()):
        v.copy_(w.clone()) if rng.random() < 0.5 else v.mul_(w if rng.random() < 0.5 else w.clone())
    return v


WRITES: list[Callable[[Any], Any]] = [
    lambda v: v.mul_(_number(v)),
    lambda v: v.add_(_number(v)),
    lambda v: v.fill_(_number(v)),
    lambda v: v.copy_(v.clone() * 2),
    lambda v: v.square_(),
]
STEPS: list[Step] = [
    lambda lib, v, pool, rng: v.conj(),
    lambda lib, v, pool, rng: v.conj(),
    lambda lib, v, pool, rng: v.imag if v.is_complex() else v,
    lambda lib, v, pool, rng: v.real,
    lambda lib, v, pool, rng: v._neg_view(),
    lambda lib, v, pool, rng: v.mH if v.ndim == 2 else v.unsqueeze(0),
    lambda lib, v, pool, rng: v[1:] if v.ndim and v.shape[0] > 1 else v,
    lambda lib, v, pool, rng: v.select(-1, -1) if v.ndim else v,
    lambda lib, v, pool, rng: v.unsqueeze(-1),
    lambda lib, v, pool, rng: v.diagonal() if v.ndim == 2 else v.squeeze(),
    lambda lib, v, pool, rng: v.movedim(0, -1) if v.ndim > 1 else v,
    lambda lib, v, pool, rng: _from_memory(v),
    lambda lib, v, pool, rng: rng.choice(WRITES)(v),
    lambda lib, v, pool, rng: rng.choice(WRITES)(v),
    lambda lib, v, pool, rng: _write_from_another(v, pool, rng),
]


def _program(lib: Any, seed: int, device: str) -> Any:
    """What a program comes to: the views' elements and bits, then the gradient; or its refusal."""
    rng = random.Random(seed)
    values = np.random.default_rng(seed).integers(-3, 4, (3, 4, 2)).astype(np.float64)
    x = lib.view_as_complex(lib.tensor(values)).to(device).requires_grad_()
    pool = [x * 1]
    try:
        for _ in range(rng.randint(3, 9)):
            v = rng.choice(pool)
            step = rng.choice(STEPS)
            # PyTorch refuses to write to what is saved of another view.
            pool.append(step(lib, v, pool, rng))
        found = [
            part
            for v in pool
            for part in (
                v.detach().resolve_conj().resolve_neg().cpu().numpy(),
                v.is_conj(),
                v.is_neg(),
            )
        ]
        total = sum((v * (1 + 2j)).sum() for v in pool)
        grad = lib.autograd.grad(total, x, lib.ones_like(total))[0]
        return [*found, grad.resolve_conj().cpu().numpy()]
    except (RuntimeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize(("device", "seeds"), [("cpu", range(200)), ("jax", range(500, 515))])
def test_random_lazy_views_are_pytorchs(
    torch_oracle: ModuleType, device: str, seeds: range
) -> None:
    if device == "jax":
        pytest.importorskip("plugrad_jax")
    completed = 0
    for seed in seeds:
        expected = _program(torch_oracle, seed, "cpu")
        found = _program(plugrad, seed, device)
        if isinstance(expected, type):
            assert found is expected, seed
            continue
        completed += 1
        assert not isinstance(found, type), f"seed {seed}: {found}"
        for left, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-9, err_msg=f"seed {seed}")
    assert completed > len(seeds) // 2
