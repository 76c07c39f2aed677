"""Batching rules: how operators act on tensors that have one dimension more, that of a batch.

A rule computes an operator for all elements of a batch at once:

    rule(info, in_dims, *args) -> (output, out_dims)

`args` are the operator's arguments in the order of its schema, keyword-only ones too. `in_dims` has
one entry for each: the mapped dimension, from 0 on, None if it is not a tensor or is not mapped, a
list of these for a list of tensors. At least one tensor is mapped. `out_dims` has the
form of the output: the dimension of the batch, or None for what does not depend on it. A rule that
returns NotImplemented leaves these arguments to the operator's decomposition.

A rule calls operators; it need know nothing of levels or of gradients. A view operator's rule gives
a view. Operators in place need none: theirs is that of the functional one, written back.
"""

from plugrad.ops.batching.table import NO_RANDOMNESS, VmapInfo, add_rule, remove_rule, rule_of

__all__ = ["NO_RANDOMNESS", "VmapInfo", "add_rule", "remove_rule", "rule_of"]
