"""The kinds of the records that a journal's log consists of.

A record is a kind, the time, numbers and objects; `plugrad._intrinsics` appends it. A comment lists
the numbers and objects, by their names in the function for it. Where a record has no time of its
own, it has the time of the record before.
"""

from __future__ import annotations

from typing import Final

from plugrad._intrinsics import FIRST_TIMED

# Tensors that the next record counts. w: name, x: sizes, y: dtype, z: device.
VALUE: Final = 0
# a: number of a node or `RAISED`, b: how many values.
END: Final = 1
# x: name of the kernel.
KERNEL: Final = 2
# a: bytes, x: device.
CAME: Final = 3
# Tensors that the next node has saved. a: version, x: name, y: sizes, z: dtype.
SAVED: Final = 4
# a: number, b: number of a Function, c: sequence number, d: how many tensors it has saved, x: name,
# y: label of a leaf, z: shape, w: edges.
NODE: Final = 5
# x: numbers of nodes, each with a count behind it.
COUNTS: Final = 6
# a: number of a node, b: number of the pass, x: device, y: inputs whose gradients are captured.
READY: Final = 7
DONE: Final = 8
# a: number of a node, x: sizes, y: dtype.
GRAD: Final = 9
# a: number of a node.
FREE: Final = 10

# Those with the time.

# a: key set, b: place in the code, c: how many values, x: operator, y: code.
CALL: Final = FIRST_TIMED
# a: key set, x: operator.
STEP: Final = FIRST_TIMED + 1
BACK: Final = FIRST_TIMED + 2
# The call has returned; what it made follows, and then `END`.
RETURNED: Final = FIRST_TIMED + 3
# a: bytes, x: device.
WENT: Final = FIRST_TIMED + 4
# a: number of the Function, b: place in the code, c: how many values, x: name, y: code.
FUNCTION: Final = FIRST_TIMED + 5
# a: whether it raised.
LEFT: Final = FIRST_TIMED + 6
# a: number of the pass, b: number of the root.
BACKWARD: Final = FIRST_TIMED + 7
# a: number of the pass.
BACKWARD_END: Final = FIRST_TIMED + 8
# a: number of a node.
POP: Final = FIRST_TIMED + 9
RUN: Final = FIRST_TIMED + 10
RAN: Final = FIRST_TIMED + 11
# a: number of a node, b: input, c: whether it is a sum, d: how many are left, x: sizes or None,
# y: dtype.
BUFFER: Final = FIRST_TIMED + 12
# a: number of a node, x: kind, y: name.
HOOK: Final = FIRST_TIMED + 13
# a: place among the book's notes.
NOTE: Final = FIRST_TIMED + 14

# In place of a node's number: the call ended with an exception.
RAISED: Final = -2
