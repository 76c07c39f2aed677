"""The key `Transforms`: runs calls on tensors of levels, for `vmap`, `grad` and `jvp`.

`tensor/levels.py` describes levels. A call arrives here (`dispatching`). The innermost level
handles it, by recording (`recording`) or by mapping over a batch (`batching`, `loop`,
`randomness`), and calls one level further out.
"""

from plugrad.levels import dispatching as dispatching  # installs the kernels
from plugrad.levels.mapping import map_flat

__all__ = ["map_flat"]
