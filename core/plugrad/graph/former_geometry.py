"""Views of a tensor that has since changed its own shape in place.

    v = base[0]; base.t_()          v starts from the former base, not from the present one

The storage keeps the former geometries of such bases. Before the steps of such a view are replayed,
an `as_strided` restores the geometry that it started from.
"""

from __future__ import annotations

from typing import Final

from plugrad.graph.support import operators
from plugrad.tensor.aliasing.layout import storage_offset, strides
from plugrad.tensor.aliasing.strides import reach
from plugrad.tensor.base import TensorBase, numel_of, sizes_of
from plugrad.tensor.views import AS_STRIDED, ViewInfo, ViewStep, steps_up_to

# Views by these have other dtypes than their bases.
CHANGE_DTYPE: Final = frozenset(["real", "imag", "view_as_real", "view_as_complex", "_view_dtype"])


def follow_base(view: ViewInfo) -> None:
    """Bring the steps of a view up to date with the geometry of its base."""
    base = view.base
    storage = base._shared_storage
    if storage is None or storage.geometries is None:
        return
    geometries = storage.geometries
    known = view.geometries
    view.geometries = len(geometries)
    for position in range(known, len(geometries)):
        of, sizes, steps, offset = geometries[position]
        if of() is base:
            arguments = (sizes, steps, offset, strides(base), storage_offset(base))
            last = ViewStep(None, operators[AS_STRIDED], arguments, -1)
            for op, given, taken in steps_up_to(view.last):
                last = ViewStep(last, op, given, taken)
            view.last = last
            return


def restart(tensor: TensorBase, view: ViewInfo) -> None:
    """A view was given another array by `.data`: it stays one of its base.

    As in PyTorch, later writes to it count as writes to the elements of the base that the new steps
    and offset lead to. If these leave the base, or the view has another dtype, the view stays as it
    was.
    """
    for op, _, _ in steps_up_to(view.last):
        if op.name in CHANGE_DTYPE:
            return
    follow_base(view)
    base = view.base
    sizes, steps, offset = sizes_of(tensor), strides(tensor), storage_offset(tensor)
    start = storage_offset(base)
    if offset < start or reach(sizes, steps, offset - start) > numel_of(base):
        return
    arguments = (sizes, steps, offset, strides(base), start)
    view.last = ViewStep(None, operators[AS_STRIDED], arguments, -1)
