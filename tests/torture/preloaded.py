"""Imported once by the process that workers are forked from: what most families need."""

from __future__ import annotations

import contextlib

import plugrad
from plugrad.testing.cases import all_cases

plugrad.ones(2).sum()
for name in ("nn", "optim"):
    getattr(plugrad, name)
for case in all_cases():
    case.all_samples()
with contextlib.suppress(ImportError):
    import torch

    torch.ones(2).sum()
    import tests.torture.programs.writing  # noqa: F401
