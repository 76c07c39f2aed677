"""Batching rules: how operators work on tensors with one more dimension, the batch.

A rule computes an operator for the whole batch at once:

    rule(info, in_dims, *args) -> (output, out_dims)

`args` are the operator's arguments in the order of its schema, keyword-only ones too. `in_dims` has
one entry for each: the mapped dimension, from 0 on, None if it is not a tensor or is not mapped, a
list of these for a list of tensors. At least one tensor is mapped. `out_dims` has the structure of
the output: the batch dimension, or None for outputs that do not depend on the batch. A rule that
returns NotImplemented leaves these arguments to the operator's decomposition.

A rule calls operators; it does not deal with levels or gradients. A view operator's rule returns a
view. In-place operators need no rule: they use the functional operator's rule, and its result is
written back.
"""

from plugrad.ops.batching.table import NO_RANDOMNESS, VmapInfo, add_rule, remove_rule, rule_of

__all__ = ["NO_RANDOMNESS", "VmapInfo", "add_rule", "remove_rule", "rule_of"]
