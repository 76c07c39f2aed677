"""What a journal's log consists of: records of a kind each, one behind the other in one list.

One list of plain values is written faster than an object for each event, and the cyclic collector
has nothing to look through. The length of a record follows from its kind, its first value.
"""

from __future__ import annotations

from typing import Final

# Tensors that the next record counts: sizes, dtype, device, name.
VALUE: Final = 0
# Time, operator, key set, code, place in the code, how many values.
CALL: Final = 1
# Time, operator, key set.
STEP: Final = 2
# Time.
BACK: Final = 3
# Time, number of a node or `RAISED`, how many values.
END: Final = 4
# Name of a kernel.
KERNEL: Final = 5
# Device, bytes.
CAME: Final = 6
# Time, device, bytes.
WENT: Final = 7
# Time, number of the Function, name, code, place in the code, how many values.
FUNCTION: Final = 8
# Time, whether it raised.
LEFT: Final = 9
# Tensors that the next node has saved: name, sizes, dtype, version.
SAVED: Final = 10
# Number, name, number of a Function, label of a leaf, shape, edges, sequence number, how many
# it has saved.
NODE: Final = 11
# Time, number of the pass, number of the root.
BACKWARD: Final = 12
# Numbers of nodes, each with a count behind it.
COUNTS: Final = 13
# Time, number of the pass.
BACKWARD_END: Final = 14
# Number of a node, of the pass, device, numbers of the inputs whose gradients are captured.
READY: Final = 15
# Time, number of a node.
POP: Final = 16
DONE: Final = 17
# Time, number of a node.
RUN: Final = 18
# Time, number of a node.
RAN: Final = 19
# Number of a node, sizes, dtype.
GRAD: Final = 20
# Time, numbers of node and input, sizes or None, dtype, whether it is a sum, how many are left.
BUFFER: Final = 21
# Time, number of a node, kind, name.
HOOK: Final = 22
# Number of a node.
FREE: Final = 23
# Time, whatever somebody noted.
NOTE: Final = 24

# In place of a node's number: the call ended with an exception.
RAISED: Final = -2

# By kind: how long a record is, and whether its second value is the time. Without one it has the
# time of the record before.
LENGTHS: Final[tuple[int, ...]] = (
    *(5, 7, 4, 2, 4, 2, 3, 4, 7, 3, 5, 9, 4, 2),
    *(3, 5, 3, 1, 3, 3, 4, 8, 5, 2, 3),
)
TIMED: Final[frozenset[int]] = frozenset(
    {
        *(CALL, STEP, BACK, END, WENT, FUNCTION, LEFT, BACKWARD, BACKWARD_END),
        *(POP, RUN, RAN, BUFFER, HOOK, NOTE),
    }
)
