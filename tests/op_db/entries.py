"""The entries of PyTorch's table that are tested on plugrad, and notes on single ones."""

from __future__ import annotations

from typing import Any

from torch.testing._internal.common_methods_invocations import op_db

DTYPES = ("float64", "float32", "bfloat16", "int64", "complex128", "bool")

# Not public, of layouts and machines that plugrad does not have, or no operators.
LEFT_OUT = {
    "jiterator_unary": "compiles CUDA source",
    "jiterator_binary": "compiles CUDA source",
    "jiterator_4inputs_with_extra_args": "compiles CUDA source",
    "jiterator_binary_return_by_ref": "compiles CUDA source",
    "jiterator_2inputs_2outputs": "compiles CUDA source",
    "to_sparse": "sparse",
    "as_strided.partial_views": "reads memory beyond a view that another one leaves out",
}
_PRIVATE = ("_", "torch.ops.", "sparse.")

# Results that are random, or memory as it was found: shapes and dtypes are compared.
BY_SHAPE = {
    *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"),
    *("svd_lowrank", "pca_lowrank"),
}
# Results that are unique except for signs, phases or order: only the part that a loss may use is
# compared.
GAUGED = {
    *("geqrf", "linalg.eig", "linalg.eigh", "linalg.ldl_factor", "linalg.ldl_factor_ex"),
    *("linalg.lu_factor", "linalg.qr", "linalg.svd", "lobpcg", "qr", "svd"),
}
# Dtypes of single entries that PyTorch takes and plugrad refuses; docs/op_db.md says why.
ABSENT_DTYPES: dict[str, tuple[str, ...]] = {}


def full_name(entry: Any) -> str:
    """Name and variant, such as ``norm.nuc``."""
    variant = entry.variant_test_name
    return f"{entry.name}.{variant}" if variant else str(entry.name)


def entries() -> dict[str, Any]:
    """The entries that are tested, by full name."""
    return {
        name: entry
        for entry in op_db
        if (name := full_name(entry)) not in LEFT_OUT
        and (not entry.name.startswith(_PRIVATE) or entry.name.startswith("__"))
        and "sparse" not in name
    }
