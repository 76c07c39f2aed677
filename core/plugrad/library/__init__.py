"""`plugrad.library`: operators, kernels, gradients and rules that are defined at run time.

The names are torch.library's; see docs/library.md.
"""

from __future__ import annotations

import importlib
from typing import Any

from plugrad.library.custom_op import CustomOpDef, custom_op
from plugrad.library.fakes import get_ctx
from plugrad.library.library import Library, fallthrough_kernel
from plugrad.library.registration import (
    define,
    impl,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
)
from plugrad.library.schema_inference import Number, infer_schema
from plugrad.library.tags import Tag
from plugrad.library.vmap import VmapRule, get_vmap_rule
from plugrad.ops.batching import VmapInfo

__all__ = [
    "CustomOpDef",
    "Library",
    "Number",
    "OpCheckError",
    "Tag",
    "VmapInfo",
    "VmapRule",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_vmap_rule",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]


def __getattr__(name: str) -> Any:
    """`opcheck` is part of the test kit, which is loaded when it is first used."""
    if name in ("opcheck", "OpCheckError"):
        return getattr(importlib.import_module("plugrad.testing.opcheck"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
