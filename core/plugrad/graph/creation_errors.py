"""Errors for views that a recorded operator must not write to, by how the view was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from plugrad.graph.node import operator_name
from plugrad.tensor.views import IN_CUSTOM_FUNCTION, INFERENCE_MODE, MULTI_OUTPUT_NODE, NO_GRAD_MODE

if TYPE_CHECKING:
    from plugrad.tensor.base import TensorBase

_AMBIGUOUS: Final = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the {mode} block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
_ADVICE: Final[dict[int, str]] = {
    IN_CUSTOM_FUNCTION: (
        " This view was created inside a custom Function (or because an input was returned as-is) "
        "and the autograd logic to handle view+inplace would override the custom backward "
        "associated with the custom Function, leading to incorrect gradients. This behavior is "
        "forbidden. You can fix this by cloning the output of the custom Function."
    ),
    MULTI_OUTPUT_NODE: (
        " This view is the output of a function that returns multiple views. Such functions do not "
        "allow the output views to be modified inplace. You should replace the inplace operation "
        "by an out-of-place one."
    ),
    NO_GRAD_MODE: _AMBIGUOUS.format(mode="no_grad"),
    INFERENCE_MODE: _AMBIGUOUS.format(mode="inference_mode"),
}


def raise_view_modified(tensor: TensorBase, indirect: bool) -> NoReturn:
    """A view is being written to, or (`indirect`) was written to through its base."""
    view = tensor._view_info
    assert view is not None
    meta = tensor._autograd_meta
    node = None if meta is None else meta.grad_fn
    what = "its base or another view of its base has been" if indirect else "is being"
    creation: int = view.creation_meta
    if node is not None and meta is not None:
        subject = f"Output {int(meta.output_nr)} of {operator_name(node)} is a view"
    else:
        subject = ""
    if creation in (NO_GRAD_MODE, INFERENCE_MODE) or node is None:
        subject = f"{subject} of a view which was created" if subject else "A view was created"
        # Without a grad_fn it was made in no_grad mode, whatever its other properties are.
        if creation == INFERENCE_MODE:
            header = f"{subject} in inference mode and {what} modified inplace in normal mode."
        else:
            header = (
                f"{subject} in no_grad mode and {what} modified inplace with grad mode enabled."
            )
    else:
        header = f"{subject} and {what} modified inplace."
    raise RuntimeError(header + _ADVICE[creation])
