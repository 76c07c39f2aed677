"""Einstein summation by permute, sum and bmm, and the public `einsum` and `tensordot`.

Every subscript, and every dimension that an ellipsis covers, becomes a label: a small integer.
Operands are contracted in pairs. Each pair is one bmm: its batch consists of the labels that both
have and that are needed later, its inner dimension of those that both have and that are not needed
later.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, NoReturn

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.autocast import pause_autocast, resume_autocast
from plugrad.dtype import bool_
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.arguments import int_list_argument, raise_argument_error
from plugrad.tensor.calls.outputs import write_out
from plugrad.tensor.calls.overridable import OVERRIDES, PROCEED, accept_foreign, override_call

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS: Final = -1
_FIRST_COVERED: Final = 52  # labels from here on are the dimensions that ellipses cover


def einsum(*args: Any) -> Any:
    """Sums products of tensors over subscripts, by Einstein's convention.

    Args:
        equation: such as ``"bij,bjk->bik"``: a letter for each dimension of each operand, then the
            dimensions of the result. Letters that the result lacks are summed over. Without an
            arrow, the result has the letters that appear once, in alphabetical order. ``...``
            stands for any leading dimensions and broadcasts; a letter twice in one operand takes
            the diagonal.
        operands: the tensors, one by one or as a list. Instead of an equation each may be followed
            by a list of integers in [0, 52) or ``...``, and the last one by the result's.

    Raises:
        RuntimeError: the equation is malformed or does not fit the operands' shapes.

    >>> import plugrad
    >>> plugrad.einsum("ij,kj->ik", plugrad.ones(2, 3), plugrad.ones(1, 3)).tolist()
    [[3.0], [3.0]]
    """
    if OVERRIDES.active:
        handled = override_call(einsum, args, args, {})
        if handled is not PROCEED:
            return handled
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    first = args[0]
    if isinstance(first, TensorBase):
        equation, operands = _from_sublists(args)
    elif not isinstance(first, str):
        raise_argument_error("einsum", "equation", 1, "str", first)
    else:
        equation = first
        operands = list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
    for index, operand in enumerate(operands):
        if not isinstance(operand, TensorBase):
            if accept_foreign(operand):
                return override_call(einsum, args, args, {})
            raise TypeError(
                f"expected Tensor as element {index} in argument 1, but got "
                f"{type(operand).__name__}"
            )
    return C.call__einsum(equation, operands, _path(equation, operands))


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sums products over pairs of dimensions.

    Args:
        dims: how many of the last dimensions of `a` meet the first of `b`, or two lists of
            dimensions, of `a` and of `b`.
        out: a tensor that the result is written to.

    >>> import plugrad
    >>> tuple(plugrad.tensordot(plugrad.ones(2, 3, 4), plugrad.ones(4, 3), ([1, 2], [1, 0])).shape)
    (2,)
    """
    if OVERRIDES.active or accept_foreign(a) or accept_foreign(b):
        named = {"dims": dims} if out is None else {"dims": dims, "out": out}
        handled = override_call(tensordot, (a, b), (a, b), named)
        if handled is not PROCEED:
            return handled
    if not isinstance(a, TensorBase):
        raise_argument_error("tensordot", "self", 1, "Tensor", a)
    if not isinstance(b, TensorBase):
        raise_argument_error("tensordot", "other", 2, "Tensor", b)
    if isinstance(dims, TensorBase):
        given: Any = dims
        dims = int(given.item()) if given.numel() == 1 else given.tolist()
    if not isinstance(dims, int) and not (isinstance(dims, (list, tuple)) and len(dims) == 2):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}"
        )
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = tuple(range(-dims, 0)), tuple(range(dims))
    else:
        left = int_list_argument(dims[0], "tensordot", "dims_self", 3, 1)
        right = int_list_argument(dims[1], "tensordot", "dims_other", 4, 1)
    if out is None:
        return C.call__tensordot(a, b, left, right)
    former = pause_autocast()
    try:
        result = C.call__tensordot(a, b, left, right)
    finally:
        resume_autocast(former)
    return write_out("tensordot", out, result)


def _path(equation: str, operands: list[Any]) -> Any:
    """Which pairs to contract, by opt_einsum if that is installed and there is a choice."""
    if len(operands) < 3:
        return None
    try:
        opt_einsum = importlib.import_module("opt_einsum")
    except ImportError:
        return None
    shapes = [sizes_of(operand) for operand in operands]
    pairs = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize="auto")[0]
    return tuple([number for pair in pairs for number in pair])


def _from_sublists(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    count = len(args) // 2
    inputs = [_subscripts(args[2 * i + 1]) for i in range(count)]
    equation = ",".join(inputs)
    if len(args) % 2:
        equation += "->" + _subscripts(args[-1])
    return equation, [args[2 * i] for i in range(count)]


def _subscripts(labels: Any) -> str:
    text = ""
    for label in labels:
        if label is Ellipsis:
            text += "..."
        elif isinstance(label, int) and 0 <= label < _FIRST_COVERED:
            text += LETTERS[label]
        else:
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)"
            )
    return text


def contract(equation: str, operands: list[Tensor], path: Any) -> Tensor:
    """`einsum` with its equation as a string."""
    arrow = equation.find("->")
    left = equation if arrow < 0 else equation[:arrow]
    terms = _parse_inputs(left)
    if len(terms) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(terms) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    covered = 0
    for index, term in enumerate(terms):
        covered = max(covered, _check_ndim(index, term, operands[index].ndim))
    if arrow < 0:
        output = _implicit_output(terms, covered)
    else:
        output = _parse_output(equation, arrow + 2, terms, covered)
    sizes: dict[int, int] = {}
    labelled: list[tuple[Tensor, list[int]]] = []
    for index, term in enumerate(terms):
        labelled.append(_label(index, operands[index], term, covered, sizes))
    return _contract_all(labelled, output, sizes, path)


def _parse_inputs(text: str) -> list[list[int]]:
    terms: list[list[int]] = [[]]
    position = 0
    while position < len(text):
        letter = text[position]
        if letter == ",":
            terms.append([])
        elif letter == ".":
            where = f"operand {len(terms) - 1}"
            if _ELLIPSIS in terms[-1]:
                raise RuntimeError(
                    f"einsum(): found '.' for {where} for which an ellipsis was already found"
                )
            if text[position : position + 3] != "...":
                raise RuntimeError(
                    f"einsum(): found '.' for {where} that is not part of any ellipsis"
                )
            terms[-1].append(_ELLIPSIS)
            position += 2
        elif letter != " ":
            terms[-1].append(_label_of(letter, position))
        position += 1
    return terms


def _label_of(letter: str, position: int) -> int:
    label = LETTERS.find(letter)
    if label < 0:
        raise RuntimeError(
            f"einsum(): invalid subscript given at index {position} in the equation string, "
            "subscripts must be in [a-zA-Z]"
        )
    return label


def _check_ndim(index: int, term: list[int], ndim: int) -> int:
    """How many dimensions the operand's ellipsis covers."""
    written = len(term)
    if _ELLIPSIS in term:
        written -= 1
        if written <= ndim:
            return ndim - written
        problem = f"the number of subscripts in the equation ({written}) is more than the number"
    elif written == ndim:
        return 0
    else:
        problem = f"the number of subscripts in the equation ({written}) does not match the number"
    tail = "" if _ELLIPSIS in term else " and no ellipsis was given"
    raise RuntimeError(f"einsum(): {problem} of dimensions ({ndim}) for operand {index}{tail}")


def _implicit_output(terms: list[list[int]], covered: int) -> list[int]:
    counts: dict[int, int] = {}
    for term in terms:
        for label in term:
            if label != _ELLIPSIS:
                counts[label] = counts.get(label, 0) + 1
    once = sorted([label for label, count in counts.items() if count == 1])
    return [_FIRST_COVERED + i for i in range(covered)] + once


def _parse_output(text: str, start: int, terms: list[list[int]], covered: int) -> list[int]:
    output: list[int] = []
    has_ellipsis = False
    position = start
    while position < len(text):
        letter = text[position]
        if letter == ".":
            if has_ellipsis:
                raise RuntimeError(
                    "einsum(): found '.' for output but an ellipsis (...) was already found"
                )
            if text[position : position + 3] != "...":
                raise RuntimeError(
                    "einsum(): found '.' for output that is not part of any ellipsis (...)"
                )
            has_ellipsis = True
            output += [_FIRST_COVERED + i for i in range(covered)]
            position += 2
        elif letter != " ":
            label = _label_of(letter, position)
            if label in output:
                raise RuntimeError(
                    f"einsum(): output subscript {letter} appears more than once in the output"
                )
            if all(label not in term for term in terms):
                raise RuntimeError(
                    f"einsum(): output subscript {letter} does not appear in the equation for any "
                    "input operand"
                )
            output.append(label)
        position += 1
    return output


def _label(
    index: int, operand: Tensor, term: list[int], covered: int, sizes: dict[int, int]
) -> tuple[Tensor, list[int]]:
    """One label per dimension; repeated ones have become a diagonal. Notes each label's size."""
    shape = sizes_of(operand)
    labels: list[int] = []
    for item in term:
        if item != _ELLIPSIS:
            labels.append(item)
            continue
        own = len(shape) - (len(term) - 1)
        labels += [_FIRST_COVERED + covered - own + i for i in range(own)]
    dim = 0
    while dim < len(labels):
        label = labels[dim]
        earlier = labels.index(label)
        size = sizes_of(operand)[dim]
        if earlier < dim:
            known = sizes_of(operand)[earlier]
            if known != size:
                raise RuntimeError(
                    f"einsum(): subscript {LETTERS[label]} is repeated for operand {index} but the "
                    f"sizes don't match, {size} != {known}"
                )
            operand = operand.diagonal(0, earlier, dim).movedim(-1, earlier)
            del labels[dim]
            continue
        known = sizes.get(label, 1)
        if size != known and size != 1 and known != 1:
            _raise_size_mismatch(index, label, size, known)
        if known == 1:
            sizes[label] = size
        dim += 1
    return operand, labels


def _raise_size_mismatch(index: int, label: int, size: int, known: int) -> NoReturn:
    if label < _FIRST_COVERED:
        raise RuntimeError(
            f"einsum(): subscript {LETTERS[label]} has size {size} for operand {index} which does "
            f"not broadcast with previously seen size {known}"
        )
    raise RuntimeError(
        f"einsum(): dimension {label - _FIRST_COVERED} covered by ellipsis in operand {index}"
        f"has size {size} which does not broadcast with previously seen ellipsis with size "
        f"{known} for the respective dimension"
    )


def _contract_all(
    operands: list[tuple[Tensor, list[int]]], output: list[int], sizes: dict[int, int], path: Any
) -> Tensor:
    remaining = list(operands)
    step = 0
    while len(remaining) > 1:
        first, second = 0, 1
        if path is not None:
            first, second = sorted(path[2 * step : 2 * step + 2])
        step += 1
        b = remaining.pop(second)
        a = remaining.pop(first)
        kept = set(output)
        for _, labels in remaining:
            kept.update(labels)
        pair = _contract_pair(a, b, kept, sizes)
        if path is None:
            remaining.insert(0, pair)
        else:
            remaining.append(pair)
    tensor, labels = _sum_out(remaining[0], set(output))
    if labels == output:
        return tensor
    return tensor.permute(tuple([labels.index(label) for label in output]))


def _sum_out(operand: tuple[Tensor, list[int]], kept: set[int]) -> tuple[Tensor, list[int]]:
    """The operand summed over every label that is not kept."""
    tensor, labels = operand
    dims = tuple([dim for dim, label in enumerate(labels) if label not in kept])
    if not dims:
        return operand
    return tensor.sum(dim=dims), [label for label in labels if label in kept]


def _contract_pair(
    a: tuple[Tensor, list[int]], b: tuple[Tensor, list[int]], kept: set[int], sizes: dict[int, int]
) -> tuple[Tensor, list[int]]:
    left, left_labels = _sum_out(a, kept | set(b[1]))
    right, right_labels = _sum_out(b, kept | set(left_labels))
    for label in [label for label in left_labels if label in right_labels and label not in kept]:
        # Nothing is contracted where one of both has size 1: the other is summed beforehand.
        one = sizes_of(left)[left_labels.index(label)] == 1
        other = sizes_of(right)[right_labels.index(label)] == 1
        if one or other:
            left, left_labels = _without(left, left_labels, label, one)
            right, right_labels = _without(right, right_labels, label, other)
    batch: list[int] = []
    inner: list[int] = []
    rows: list[int] = []
    for label in left_labels:
        if label not in right_labels:
            rows.append(label)
        elif label in kept:
            batch.append(label)
        else:
            inner.append(label)
    columns = [label for label in right_labels if label not in left_labels]
    if not inner:
        return _multiply(left, left_labels, right, right_labels, batch + rows + columns)
    left = _arrange(left, left_labels, batch, rows, inner, sizes)
    right = _arrange(right, right_labels, batch, inner, columns, sizes)
    product = F.bmm(left, right) if batch else _mm(left, right)
    labels = batch + rows + columns
    # A label with size 1 in both operands keeps that size in the product.
    return product.reshape(tuple([sizes[label] for label in labels])), labels


def _without(
    tensor: Tensor, labels: list[int], label: int, has_size_one: bool
) -> tuple[Tensor, list[int]]:
    dim = labels.index(label)
    reduced = tensor.squeeze(dim) if has_size_one else tensor.sum(dim=(dim,))
    return reduced, [item for item in labels if item != label]


def _mm(left: Tensor, right: Tensor) -> Tensor:
    """A batch of one product, unless dtypes agree: so refused dtypes are refused alike."""
    if left.dtype is right.dtype and left.dtype is not bool_:
        return F.mm(left, right)
    product: Tensor = F.bmm(left.unsqueeze(0), right.unsqueeze(0)).squeeze(0)
    return product


def _arrange(
    tensor: Tensor,
    labels: list[int],
    batch: list[int],
    middle: list[int],
    last: list[int],
    sizes: dict[int, int],
) -> Tensor:
    """The operand of a (b)mm: three groups of labels, each flattened to one dimension."""
    wanted = batch + middle + last
    arranged = tensor.permute(tuple([labels.index(label) for label in wanted]))
    full = tuple([sizes[label] for label in wanted])
    if sizes_of(arranged) != full:
        arranged = arranged.expand(full)
    shape = (_count(middle, sizes), _count(last, sizes))
    return arranged.reshape((_count(batch, sizes), *shape) if batch else shape)


def _count(labels: list[int], sizes: dict[int, int]) -> int:
    count = 1
    for label in labels:
        count *= sizes[label]
    return count


def _multiply(
    a: Tensor, a_labels: list[int], b: Tensor, b_labels: list[int], labels: list[int]
) -> tuple[Tensor, list[int]]:
    """A product without a sum: broadcasting does it."""
    return _spread(a, a_labels, labels) * _spread(b, b_labels, labels), labels


def _spread(tensor: Tensor, own: list[int], labels: list[int]) -> Tensor:
    """The tensor with its dimensions in the order of `labels`, size 1 where it has none."""
    order = tuple([own.index(label) for label in labels if label in own])
    arranged = tensor.permute(order)
    shape: list[int] = []
    dim = 0
    for label in labels:
        if label in own:
            shape.append(sizes_of(arranged)[dim])
            dim += 1
        else:
            shape.append(1)
    return arranged.reshape(tuple(shape))
