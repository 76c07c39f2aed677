"""The operators that the namespace is made of, as users and type checkers see them."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plugrad as F
    from plugrad import Tensor
else:
    from plugrad._generated import functions as F
    from plugrad._tensor.classes import Tensor

__all__ = ["F", "Tensor"]
