"""`Link` and `Operand`: the calls that a variant may compute at once, as compiled steps describe
them."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Any, NamedTuple


class Operand(NamedTuple):
    """An argument of a `Link`: an array, or a number that may differ in each run.

    Attributes:
        of_link: whether it is the result of a link instead of an input.
        number: which link or input it is, from 0.

    >>> from plugrad.plugins import Operand
    >>> Operand(of_link=False, number=0)
    Operand(of_link=False, number=0)
    """

    of_link: bool
    number: int


class Link(NamedTuple):
    """One of several calls that a function may compute at once: see `Variant.joins`.

    Attributes:
        kernel: the variant's.
        arguments: its arguments: an `Operand` for each array, other values unchanged.

    >>> import numpy as np
    >>> from plugrad.plugins import Link, Operand
    >>> def joined(links):
    ...     # exp(x), then its negative: one pass over the memory would be possible here.
    ...     return lambda x: -np.exp(x)
    >>> first = Link(np.exp, (Operand(False, 0),))
    >>> second = Link(np.negative, (Operand(True, 0),))
    >>> joined([first, second])(np.zeros(2))
    array([-1., -1.])
    """

    kernel: Any
    arguments: tuple[Any, ...]
