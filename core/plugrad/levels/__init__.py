"""The key `Transforms`: runs calls on tensors of levels, for `vmap`, `grad` and `jvp`.

`tensor/levels.py` says what levels are. Here a call comes in (`dispatching`), is done by the
innermost level, as a recording one (`recording`) or one that maps over a batch (`batching`, `loop`,
`randomness`), and goes one level further out.
"""

from plugrad.levels import dispatching as dispatching  # installs the kernels
from plugrad.levels.mapping import map_flat

__all__ = ["map_flat"]
